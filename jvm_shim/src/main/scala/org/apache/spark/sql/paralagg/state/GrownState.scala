package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.{Block, Dictionary, Routes}
import org.apache.spark.sql.paralagg.plan.{RuleSpec, StaticIndexSpec, StratumSpec}

/**
 * The step from a kept state and changed rows of its inputs to the state of the next run. It interns the changed rows
 * alone, and copies the columns of indexes that got or lost some. All rows of the result are settled then, except those
 * that fell: they are removed, to be derived again.
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
  private val ghosts = parts.map(_.ghosts.size)

  /** The groups of each index that got rows. */
  private var touched = Map.empty[Int, Array[Int]]

  parts.foreach(_.settle())

  /** Under sums: rows of indexes that alone make the share of existing rows in the values of others, see `shares`. */
  private var sharing = Seq.empty[SideRows]

  /** The rows that static indexes lose. */
  val lost: Seq[LostRows] = stratum.staticIndexes.toSeq.flatMap(i => lostFrom(i, kept.loop.staticIndex(i.id)))

  /** The number of rows to remove that the state does not have. */
  def missing: Int = lost.map(_.removal.missing).sum

  /** The rows that may derive fallen rows again, by relation; None if no row fell. */
  private var supporters: Option[Array[Array[Int]]] = None

  /** Returns the state without `fell`, the ids of fallen rows by relation; `removes` if any task has one. Collective. */
  def build(fell: Array[Array[Int]], removes: Boolean): LoopState = {
    parts.foreach(p => fell(p.index).foreach(p.remove))
    val all = if (removes) Some(new Supporters(parts, fell, gang)) else None
    val grown = stratum.staticIndexes.map { i =>
      val shrunken = shrink(i, kept.loop.staticIndex(i.id))
      if (stratum.isAccumulating) sharing ++= all.toSeq.flatMap(toFallen(i, shrunken, _))
      i -> grow(i, shrunken)
    }
    GhostIds.exchange(parts, ghosts, gang)
    parts.foreach { p =>
      p.grow()
      p.growGhosts()
      if (removes) p.forgetSent()
    }
    val statics = grown.map { case (i, index) =>
      i.id -> i.alignedTo.fold(index)(r => index.withGroups(parts(r).keys.size))
    }.toMap
    if (stratum.isLattice) supporters = all.map(supportersOf(_, statics))
    val noBase = parts.map(_ => Array.empty[Array[Int]]) // the run has its base rows with their ids
    new LoopState(gang.part, gang.tasks, strings, parts, statics, Map.empty, resolved, noBase)
  }

  /** Returns the rows to which the rules have to be applied again, once the state is built. */
  def reapplied: Array[ReappliedRows] =
    if (stratum.isLattice) parts.map(p => new ReappliedRows(p, joined(p.index))) else Array.empty

  /**
   * Returns the rows of indexes that the rows of the state have to be joined with, once, since rules must not be applied
   * again under sums: new rows, and those whose targets fell.
   */
  def shares: Seq[SideRows] = sharing

  private def toFallen(i: StaticIndexSpec, index: StaticIndex, all: Supporters): Seq[SideRows] =
    LoopBuilder.resolvedBy(stratum, i).flatMap { rule =>
      val rows = all.rows(resolved(rule), stratum.rules(rule).head)
      if (rows.isEmpty) None
      else Some(new SideRows(i.id, index.only(rows), Map(rule -> resolved(rule).only(rows))))
    }

  /**
   * Returns the rows of relation `r` that new rows may join, and those that may derive fallen rows again. Static rows
   * determine them, if rules look these up by a row's id. It may be any row otherwise.
   */
  private def joined(r: Int): Array[Int] = {
    val part = parts(r)
    val rules = rulesOf(r)
    val reached = rules.flatMap(_.probes).filter(p => touched.contains(p.index))
    val ids =
      if (reached.forall(_.aligned) && (supporters.isEmpty || rules.forall(_.isAlongRows)))
        (reached.map(_.index).distinct.flatMap(touched(_).toSeq) ++ supporters.toSeq.flatMap(
          _(r).toSeq)).distinct.toArray
      else Array.range(0, part.keys.size)
    ids.filter(part.isPresent(_))
  }

  private def rulesOf(r: Int): Seq[RuleSpec] = stratum.rules.toSeq.filter(_.driver.relation == r)

  private def supportersOf(all: Supporters, statics: Map[Int, StaticIndex]): Array[Array[Int]] = {
    val byRule = stratum.rules.indices.filter(stratum.rules(_).isAlongRows).map { n =>
      val rule = stratum.rules(n)
      rule.driver.relation -> all.groups(statics(rule.resolvingProbe.index), all.rows(resolved(n), rule.head))
    }
    parts.map(p => byRule.filter(_._1 == p.index).flatMap(_._2.toSeq).distinct.toArray)
  }

  private def lostFrom(i: StaticIndexSpec, old: StaticIndex): Option[LostRows] = {
    val rows = routes.removed.get(i.id).fold(Array.empty[Block])(blocks)
    val n = rows.map(_.rows).sum
    if (n == 0) None
    else {
      val keys = i.alignedTo.fold(old.keys)(parts(_).keys)
      val ids = if (i.isShared) gang.once(interned(i, rows, keys)) else interned(i, rows, keys)
      val added = inBlockOrder(i, old, rows, keys)
      val rules = LoopBuilder.resolvedBy(stratum, i)
      val found = rules.map(r => r -> resolver.resolve(stratum.rules(r), rows, ints(n))).toMap
      val removal =
        new Removal(old, ids, added.payload, added.nulls, rules.map(r => kept.loop.resolved(r) -> found(r)))
      parts.foreach(_.grow())
      Some(new LostRows(alone(i, old, ids, added, keys.size, found), removal))
    }
  }

  /** Returns changed rows as an index of their own, with their targets by rule. */
  private def alone(
      i: StaticIndexSpec, old: StaticIndex, ids: Column, rows: StaticIndex, groups: Int, found: Map[Int, Column])
      : SideRows = {
    val (index, insertion) = insert(old.withoutRows, ids, rows, groups, i.sortedBy.flatMap(found.get))
    new SideRows(i.id, index,
      found.map { case (rule, added) =>
        rule -> insertion.merge(added.sameKind(0), added)
      })
  }

  private def shrink(i: StaticIndexSpec, old: StaticIndex): StaticIndex =
    lost.find(_.side.index == i.id).fold(old) { l =>
      LoopBuilder.resolvedBy(stratum, i).foreach(r => resolved(r) = l.removal.without(resolved(r)))
      val index = if (i.isShared) gang.once(l.removal()) else l.removal()
      if (i.isShared) gang.meet() // no task changes what another one still reads
      index
    }

  private def grow(i: StaticIndexSpec, old: StaticIndex): StaticIndex = {
    val rows = blocks(routes.static(i.id))
    val n = rows.map(_.rows).sum
    def inserted(keys: KeyMap, found: Map[Int, Column]) = {
      val (ids, added) = (interned(i, rows, keys), inBlockOrder(i, old, rows, keys))
      if (stratum.isAccumulating) sharing :+= alone(i, old, ids, added, keys.size, found)
      insert(old, ids, added, keys.size, i.sortedBy.flatMap(found.get))
    }
    if (n == 0) old
    else if (i.isShared) {
      val (index, insertion) = gang.once(inserted(old.keys, Map.empty))
      order(i, insertion, targets(i, n))
      gang.meet() // no task changes what another one still reads
      index
    } else {
      val found = targets(i, n)
      val (index, insertion) = inserted(i.alignedTo.fold(old.keys)(parts(_).keys), found)
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

  /** Inserts rows into an index, each into its group of `ids`. */
  private def insert(
      old: StaticIndex, ids: Column, added: StaticIndex, groups: Int, sortedBy: Option[Column])
      : (StaticIndex, Insertion) = {
    val insertion = new Insertion(old, ids, sortedBy.filter(_ => old.splits != null).orNull, groups)
    val isRead = old.payload.map(_ != null)
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

/** Rows of a static index as one of their own, and the targets that rules resolve for them. */
final class SideRows private[state] (val index: Int, val rows: StaticIndex, val targets: Map[Int, Column])

/** Rows that a static index loses, and their removal. */
final class LostRows private[state] (val side: SideRows, private[state] val removal: Removal)
