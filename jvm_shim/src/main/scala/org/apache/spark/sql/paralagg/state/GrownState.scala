package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.{Block, Dictionary, Routes}
import org.apache.spark.sql.paralagg.plan.{StaticIndexSpec, StratumSpec}

/**
 * The step from a kept state and new rows of its inputs to the state of the next run. It interns the new rows alone,
 * and copies the columns of indexes that got some. All rows of the result are settled then.
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

  /** Returns the state. Collective. */
  def build(): LoopState = {
    val ghosts = parts.map(_.ghosts.size)
    parts.foreach(_.settle())
    val baseIds = parts.map(p => blocks(routes.base(p.index)).map(p.ids))
    val grown = stratum.staticIndexes.map(i => i -> grow(i, kept.loop.staticIndex(i.id)))
    GhostIds.exchange(parts, ghosts, gang)
    parts.foreach { p =>
      p.grow()
      p.growGhosts()
    }
    val statics = grown.map { case (i, index) =>
      i.id -> i.alignedTo.fold(index)(r => index.withGroups(parts(r).keys.size))
    }.toMap
    new LoopState(gang.part, gang.tasks, strings, parts, statics, Map.empty, resolved, baseIds)
  }

  /** Returns the rows to which the rules have to be applied again, once the state is built. */
  def reapplied: Array[ReappliedRows] = parts.map(p => new ReappliedRows(p, joined(p.index)))

  /**
   * Returns the rows of relation `r` that new rows may join. Rules that look new rows up by a row's id name these rows;
   * it may be any row if a rule reaches new rows otherwise.
   */
  private def joined(r: Int): Array[Int] = {
    val part = parts(r)
    val reached = stratum.rules.filter(_.driver.relation == r).flatMap(_.probes).filter(p => touched.contains(p.index))
    val ids =
      if (reached.forall(_.aligned)) reached.map(_.index).distinct.flatMap(i => touched(i).toSeq).distinct
      else Array.range(0, part.keys.size)
    ids.filter(part.isPresent(_))
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
    val n = rows.map(_.rows).sum
    val ids = ints(n)
    BlockKeys.intern(rows, i.keys.length, keys, hasMask = false, ids)
    val insertion = new Insertion(old, ids, sortedBy.filter(_ => old.splits != null).orNull, keys.size)
    val isRead = old.payload.map(_ != null)
    val inOrder = Placement(null, null, Column(Array.range(0, n)))
    val added = StaticIndex.build(rows, i.keys.length, keys, inOrder, isRead, c => old.payload(c).sameKind(n))
    val payload = isRead.indices.map(c => if (isRead(c)) insertion.merge(old.payload(c), added.payload(c)) else null)
    val nulls = isRead.indices.map(c => if (isRead(c)) insertion.mergeNulls(old.nulls(c), added.nulls(c)) else null)
    (new StaticIndex(old.keys, insertion.offsets, insertion.splits, payload.toArray, nulls.toArray), insertion)
  }

  private def ints(n: Int): Column = Column(new Array[Int](n))
}
