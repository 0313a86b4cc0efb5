package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.load.{Block, Routes}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.util.KnownSizeEstimation

/**
 * One task's state after a run, with which a later run goes on when its sources have more rows (`GrownState`). It has
 * the rows of the result, the keys and ghosts, the static indexes and the targets, and what they contain: new rows fit
 * only if they have no null and no wide value where the loaded ones had none. `base` are the base rows by relation, if
 * a run has needed them.
 */
final class KeptState(
    val loop: LoopState, val shape: Shape, val base: Option[Array[BaseRows]], override val estimatedSize: Long)
    extends KnownSizeEstimation {

  /** Returns the column of a route that rows of these contents, new or removed, may not have; None if they fit. */
  def unfit(more: Array[RouteContents], routes: Routes): Option[String] = {
    val added = shape.contents.indices.map(r => r -> r)
    val removed = routes.removed.toSeq.map { case (index, r) => routes.static(index) -> r }
    (added ++ removed).iterator.flatMap { case (loaded, r) =>
      val (old, now) = (shape.contents(loaded), more(r))
      old.nulls.indices.iterator.collect {
        case c if now.nulls(c) && !old.nulls(c) => s"column $c of route $r has a null"
        case c if old.narrow(c) && !now.narrow(c) => s"column $c of route $r has a value of more than 32 bits"
      }
    }.find(_ => true)
  }

  /** Returns the state from which a run over other base rows starts: the same indexes, and no other rows. */
  def restarted(stratum: StratumSpec, routes: Routes, blocks: Int => Array[Block]): LoopState = {
    val parts = loop.parts.map { p =>
      if (KeptState.isAnchored(stratum, p.index)) p
      else new RelationPart(p.index, p.spec, p.shape, stratum)
    }
    val baseIds = parts.map(p => blocks(routes.base(p.index)).map(p.ids))
    parts.foreach { p =>
      p.grow()
      p.growGhosts()
    }
    val statics = stratum.staticIndexes.map { i =>
      val index = loop.staticIndex(i.id)
      i.id -> i.alignedTo.fold(index)(r => index.withGroups(parts(r).keys.size))
    }.toMap
    new LoopState(loop.me, loop.tasks, loop.strings, parts, statics, Map.empty, loop.resolved, baseIds)
  }
}

object KeptState {

  /** Tests whether static rows have ids of a relation's keys. */
  private def isAnchored(stratum: StratumSpec, relation: Int): Boolean =
    stratum.staticIndexes.exists(_.alignedTo.contains(relation)) ||
      stratum.rules.exists(r => r.target.kind == "resolved" && r.head == relation)

  /**
   * Returns the state to keep, or None if a part of it lies in a mapped file, which ends with its run. `localTasks`
   * tasks of the executor share its strings.
   */
  def of(loop: LoopState, shape: Shape, base: Option[Array[BaseRows]], localTasks: Int): Option[KeptState] = {
    val columns = loop.resolved.filter(_ != null) ++ loop.statics.values.flatMap(_.payload).filter(_ != null)
    if (columns.exists(_.isMapped) || loop.strings.mappedBytes > 0) None
    else {
      val state = new LoopState(
        loop.me, loop.tasks, loop.strings, loop.parts, loop.statics, Map.empty, loop.resolved,
        loop.parts.map(_ => Array.empty[Array[Int]]))
      val indexes = loop.statics.values.map(i => i.bytes + 4L * i.offsets.length).sum
      val targets = loop.resolved.filter(_ != null).map(_.bytes).sum
      val rows = loop.parts.map(_.bytes).sum + base.fold(0L)(_.map(_.bytes).sum)
      val strings = loop.strings.bytes / localTasks
      Some(new KeptState(state, shape, base, rows + indexes + targets + strings))
    }
  }
}
