package org.apache.spark.sql.paralagg.state

import scala.collection.mutable

import org.apache.spark.sql.paralagg.gang.{Gang, MemoryAccount}
import org.apache.spark.sql.paralagg.load.{Block, Dictionary, MappedFile, Routes}
import org.apache.spark.sql.paralagg.plan.{RuleSpec, StaticIndexSpec, StratumSpec}

/**
 * The step from loaded blocks to the loop's state: relation parts with dense ids, static indexes, resolved targets.
 *
 * It assigns ids first: to base rows, to keys that static sides join on, to keys that rules derive. Then it requests
 * the ids of ghosts from their owners. So a message of the loop is (id, value), and the loop hashes nothing.
 */
final class LoopBuilder(
    stratum: StratumSpec,
    routes: Routes,
    shape: Shape,
    gang: Gang,
    strings: Dictionary,
    memory: MemoryAccount,
    blocks: Int => Array[Block]) {

  private val parts = stratum.relations.indices.map { r =>
    new RelationPart(r, stratum.relations(r), shape.relations(r), stratum)
  }.toArray

  /** Builds the state; calls `ends` with the name of each part that is done. */
  def build(ends: String => Unit = _ => ()): LoopState = {
    val resolving = LoopBuilder.resolving(stratum)
    expectRanges(resolving)
    val baseIds = parts.map(p => blocks(routes.base(p.index)).map(p.ids))
    ends("ids")
    // Targets by row; GhostIds then gets the owners' ids of the ghosts among them.
    val resolver = new Targets(stratum, routes, parts, gang, strings, blocks)
    val resolved = new Array[Column](stratum.rules.length)
    val built = stratum.staticIndexes.map { i =>
      i -> buildIndex(i, LoopBuilder.resolvedBy(stratum, i), resolver, resolved, ends)
    }
    GhostIds.exchange(parts, parts.map(_ => 0), gang)
    ends("ghosts")
    parts.foreach { p =>
      p.grow()
      p.growGhosts()
    }
    val statics = built.map { case (i, index) =>
      i.id -> i.alignedTo.fold(index)(r => index.withGroups(parts(r).keys.size))
    }.toMap
    val indexes = stratum.relationIndexes.map { i =>
      val original = parts(i.relation)
      val part = if (i.copy) new RelationPart(i.relation, original.spec, original.shape, stratum) else original
      part.grow()
      i.id -> new RelationIndex(i, part)
    }.toMap
    ends("indexes")
    new LoopState(gang.part, gang.tasks, strings, parts, statics, indexes, resolved, baseIds)
  }

  /** Passes the expected range to maps of one-word keys: base rows, keys that static sides join on, derived keys. */
  private def expectRanges(resolving: Seq[Int]): Unit = parts.foreach { p =>
    if (p.shape.keyWords == 1) {
      val base = Seq(routes.base(p.index), routes.initial(p.index)).filter(_ >= 0).flatMap(blocks(_))
      val aligned = stratum.staticIndexes.filter(_.alignedTo.contains(p.index))
      val joined = aligned.toSeq.flatMap(i => blocks(routes.static(i.id)).toSeq)
      def derived =
        resolving.map(stratum.rules(_)).filter(r => stratum.relations(r.head) eq p.spec).iterator.flatMap { r =>
          val column = stratum.targetColumn(r, 0)
          blocks(routes.static(r.resolvingProbe.index)).iterator.map((_, column))
        }
      StaticIndex.expect(p.keys, (base ++ joined).iterator.map((_, 0)) ++ derived)
      StaticIndex.expect(p.ghosts, derived)
    }
  }

  private var heldBytes = 0L

  /**
   * Builds an index and resolves the targets of `rules` by its rows. One index after the other: ids, targets and loaded
   * rows of each are freed before the next one needs memory.
   */
  private def buildIndex(
      i: StaticIndexSpec,
      rules: Seq[Int],
      resolver: Targets,
      resolved: Array[Column],
      ends: String => Unit): StaticIndex = {
    val rows = blocks(routes.static(i.id))
    val n = rows.map(_.rows.toLong).sum
    val narrow = shape.narrowPayload(i.id)
    val needed = LoopBuilder.memory(stratum, i, i.read.map(c => if (narrow(c)) 4 else 8).sum)
    val share = if (i.isShared) n / gang.localTasks else n
    val widest = if (i.read.exists(!narrow(_))) 8 else 4
    val mayMap = MemoryAccount.mayMap && n * widest <= MappedFile.MostBytes
    val isBuiltInMemory = !mayMap || memory.makeRoom(heldBytes + share * needed.building)
    def scratch() = Column(Math.toIntExact(n), isWide = false, !isBuiltInMemory, gang)
    def intern(keys: KeyMap) = {
      val ids = scratch()
      BlockKeys.intern(rows, i.keys.length, keys, hasMask = false, ids)
      ids
    }
    val ids = i.alignedTo.map(r => intern(parts(r).keys))
    ends("ids")
    val targets = mutable.Map(rules.map(rule => rule -> resolver.resolve(stratum.rules(rule), scratch())): _*)
    ends("targets")
    val isInMemory = !mayMap || {
      val state = parts.map(_.bytesWhenGrown).sum
      val isGranted = memory.makeRoom(heldBytes + share * needed.kept + state)
      if (i.isShared) gang.allreduce(Array(if (isGranted) 0.0 else 1.0))(0) == 0 else isGranted
    }
    if (isInMemory) {
      heldBytes += share * needed.kept
      memory.hold(heldBytes, "the indexes of the inputs")
    }
    def kept(isWide: Boolean) = {
      val column = Column(Math.toIntExact(n), isWide, !isInMemory, gang)
      if (column.isMapped) memory.mappedBytes += column.bytes
      column
    }
    def split = i.sortedBy.filter(_ => gang.tasks > 1).flatMap(targets.get).orNull
    val isRead = i.payload.indices.map(i.read.contains(_)).toArray
    def order(placement: Placement): Unit = rules.foreach { rule =>
      val values = targets.remove(rule).get
      resolved(rule) = placement.order(values, kept(isWide = false))
      values.close()
    }
    def build(ids: Column, keys: KeyMap): (StaticIndex, Placement) = {
      val placement = StaticIndex.place(ids, keys.size, split)
      if (!i.isShared) order(placement)
      (StaticIndex.build(rows, i.keys.length, keys, placement, isRead, c => kept(!narrow(c))), placement)
    }
    def buildWithKeys(): (StaticIndex, Placement) = {
      val keys = KeyMap(i.keys.length)
      if (i.keys.length == 1) StaticIndex.expect(keys, rows.iterator.map((_, 0)))
      build(intern(keys), keys)
    }
    val (index, placement) =
      if (i.isShared) gang.once(buildWithKeys())
      else i.alignedTo.fold(buildWithKeys())(r => build(ids.get, parts(r).keys))
    if (i.isShared) {
      order(placement)
      gang.meet() // `placement` is closed when no task reads it
    }
    placement.rows.close()
    if (!i.everywhere) rows.foreach(_.free())
    ends("indexes")
    index
  }
}

/** The bytes of a static index for each row: while it is built, and then. */
case class IndexMemory(building: Int, kept: Int)

object LoopBuilder {

  /** Returns the rules whose targets are resolved at load. */
  private def resolving(stratum: StratumSpec): Seq[Int] =
    stratum.rules.indices.filter(stratum.rules(_).target.kind == "resolved")

  /** Returns the rules whose targets rows of this index stand for. */
  private[state] def resolvedBy(stratum: StratumSpec, i: StaticIndexSpec): Seq[Int] =
    resolving(stratum).filter(stratum.rules(_).resolvingProbe.index == i.id)

  /** Returns the bytes of a resolved target: its id, and the source in [[TargetSums]]. */
  def bytesOfTarget(rule: RuleSpec): Int = if (rule.addsByTarget) 8 else 4

  /** `payload` are the bytes of the columns that the rules read. */
  def memory(stratum: StratumSpec, i: StaticIndexSpec, payload: Int): IndexMemory = {
    val targets = resolvedBy(stratum, i).map(r => bytesOfTarget(stratum.rules(r))).sum
    val places = 4
    IndexMemory(targets + places + math.max(4, payload),
      targets + payload) // 4: ids, which are freed before the payload
  }
}
