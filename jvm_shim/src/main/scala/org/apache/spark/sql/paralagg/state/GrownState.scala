package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.{Block, Dictionary, Routes}
import org.apache.spark.sql.paralagg.plan.{StaticIndexSpec, StratumSpec}

/**
 * The step from a kept state and new rows of its inputs to the state of the next run. It interns the new rows alone,
 * and copies the columns of indexes that got or lost some. All rows of the result are settled then, except those that
 * the initial rows name: they are removed, to be derived again.
 */
final class GrownState(
    stratum: StratumSpec,
    routes: Routes,
    kept: KeptState,
    gang: Gang,
    strings: Dictionary,
    blocks: Int => Array[Block]) {
  private val parts = kept.loop.parts
  private val resolved = kept.loop.resolved.clone()
  private val resolver = new Targets(stratum, routes, parts, gang, strings, blocks, isCached = false)

  /** The groups of each index that got rows. */
  private var touched = Map.empty[Int, Array[Int]]

  private val removes = routes.removed.nonEmpty
  private var missing = 0

  /** Returns the state, and the number of rows to remove that it did not have. Collective. */
  def build(): (LoopState, Int) = {
    val ghosts = parts.map(_.ghosts.size)
    parts.foreach { p =>
      p.settle()
      blocks(routes.initial(p.index)).foreach(b => p.ids(b).foreach(id => if (id < p.state.capacity) p.remove(id)))
    }
    val baseIds = parts.map(p => blocks(routes.base(p.index)).map(p.ids))
    val grown = stratum.staticIndexes.map(i => i -> grow(i, shrink(i, kept.loop.staticIndex(i.id))))
    GhostIds.exchange(parts, ghosts, gang)
    parts.foreach { p =>
      p.grow()
      p.growGhosts()
      if (removes) p.forgetSent()
    }
    val statics = grown.map { case (i, index) =>
      i.id -> i.alignedTo.fold(index)(r => index.withGroups(parts(r).keys.size))
    }.toMap
    (new LoopState(gang.part, gang.tasks, strings, parts, statics, Map.empty, resolved, baseIds), missing)
  }

  /** Returns the rows to which the rules have to be applied again, once the state is built. */
  def reapplied: Array[ReappliedRows] = parts.map(p => new ReappliedRows(p, joined(p.index)))

  /**
   * Returns the rows of relation `r` that new rows may join. Rules that look new rows up by a row's id name these rows;
   * it may be any row if a rule reaches new rows otherwise. Removed rows may be derived again from any row.
   */
  private def joined(r: Int): Array[Int] = {
    val part = parts(r)
    val reached = stratum.rules.filter(_.driver.relation == r).flatMap(_.probes).filter(p => touched.contains(p.index))
    val ids =
      if (!removes && reached.forall(_.aligned)) reached.map(_.index).distinct.flatMap(i => touched(i).toSeq).distinct
      else Array.range(0, part.keys.size)
    ids.filter(part.isPresent(_))
  }

  private def shrink(i: StaticIndexSpec, old: StaticIndex): StaticIndex = {
    val rows = routes.removed.get(i.id).fold(Array.empty[Block])(blocks)
    val n = rows.map(_.rows).sum
    if (n == 0) old
    else {
      val keys = i.alignedTo.fold(old.keys)(parts(_).keys)
      val ids = if (i.isShared) gang.once(interned(i, rows, keys)) else interned(i, rows, keys)
      val added = inBlockOrder(i, old, rows, keys)
      val rules = LoopBuilder.resolvedBy(stratum, i)
      val found = rules.map(r => resolved(r) -> resolver.resolve(stratum.rules(r), rows, ints(n)))
      val removal = new Removal(old, ids, added.payload, added.nulls, found)
      missing += removal.missing
      rules.foreach(r => resolved(r) = removal.without(resolved(r)))
      val index = if (i.isShared) gang.once(removal()) else removal()
      if (i.isShared) gang.meet() // no task changes what another one still reads
      index
    }
  }

  private def grow(i: StaticIndexSpec, old: StaticIndex): StaticIndex = {
    val rows = blocks(routes.static(i.id))
    val n = rows.map(_.rows).sum
    if (n == 0) old
    else if (i.isShared) {
      val (index, insertion) = gang.once(insert(i, old, rows, old.keys, None))
      order(i, insertion, targets(i, n))
      gang.meet() // no task changes what another one still reads
      index
    } else {
      val keys = i.alignedTo.fold(old.keys)(parts(_).keys)
      val found = targets(i, n)
      val (index, insertion) = insert(i, old, rows, keys, i.sortedBy.flatMap(found.get))
      order(i, insertion, found)
      index
    }
  }

  /** Returns the targets of the new rows, by rule. */
  private def targets(i: StaticIndexSpec, n: Int): Map[Int, Column] =
    LoopBuilder.resolvedBy(stratum, i).map(rule => rule -> resolver.resolve(stratum.rules(rule), ints(n))).toMap

  private def order(i: StaticIndexSpec, insertion: Insertion, found: Map[Int, Column]): Unit = {
    touched += i.id -> insertion.touched
    found.foreach { case (rule, added) => resolved(rule) = insertion.merge(resolved(rule), added) }
  }

  private def insert(
      i: StaticIndexSpec, old: StaticIndex, rows: Array[Block], keys: KeyMap, sortedBy: Option[Column])
      : (StaticIndex, Insertion) = {
    val ids = interned(i, rows, keys)
    val insertion = new Insertion(old, ids, sortedBy.filter(_ => old.splits != null).orNull, keys.size)
    val isRead = old.payload.map(_ != null)
    val added = inBlockOrder(i, old, rows, keys)
    val payload = isRead.indices.map(c => if (isRead(c)) insertion.merge(old.payload(c), added.payload(c)) else null)
    val nulls = isRead.indices.map(c => if (isRead(c)) insertion.mergeNulls(old.nulls(c), added.nulls(c)) else null)
    (new StaticIndex(old.keys, insertion.offsets, insertion.splits, payload.toArray, nulls.toArray), insertion)
  }

  /** Returns the group of each row. */
  private def interned(i: StaticIndexSpec, rows: Array[Block], keys: KeyMap): Column = {
    val ids = ints(rows.map(_.rows).sum)
    BlockKeys.intern(rows, i.keys.length, keys, hasMask = false, ids)
    ids
  }

  /** Returns the columns of rows as they come, without groups. */
  private def inBlockOrder(i: StaticIndexSpec, old: StaticIndex, rows: Array[Block], keys: KeyMap): StaticIndex = {
    val n = rows.map(_.rows).sum
    val inOrder = Placement(null, null, Column(Array.range(0, n)))
    StaticIndex.build(
      rows, i.keys.length, keys, inOrder, old.payload.map(_ != null), c => old.payload(c).sameKind(n))
  }

  private def ints(n: Int): Column = Column(new Array[Int](n))
}
