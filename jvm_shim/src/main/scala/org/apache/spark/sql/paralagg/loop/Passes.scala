package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.LoopState

/**
 * The iterations of a lattice without a limit. Its result does not depend on the order, so a pass reads what it writes.
 * Passes take rows in the order of ids, or the best ones first ([[OrderedPasses]]). The exchange carries the votes.
 */
private[loop] final class Passes(
    stratum: StratumSpec, loop: LoopState, runner: Runner, exchange: DeltaExchange, rollOver: RollOver,
    hubs: Option[HubRows], gang: Gang, stats: LoopStats) {
  private val parts = loop.parts
  private val ordered =
    if (stratum.orderedBy < 0 || parts.head.isTraced || parts.head.shape.dependents(stratum.orderedBy)) None
    else Some(new OrderedPasses(stratum, loop, runner, exchange, hubs, gang, stats))

  /** The iterations so far that took rows by their values. */
  var appliedByValue = 0

  /** Tests whether passes take rows by their values. They have their own limit, after which plain passes continue. */
  def isByValue: Boolean = ordered.exists(_.isOn)

  /** Puts all waiting rows on the dirty lists, for a checkpoint. */
  def release(): Unit = {
    ordered.foreach(_.release())
    hubs.foreach(_.release())
  }

  /** Prepares for other base rows. */
  def reset(): Unit = {
    appliedByValue = 0
    ordered.foreach(_.reset())
  }

  /** Runs an iteration. Returns the sums of the votes. Collective. */
  def step(): Array[Double] = {
    ordered.filterNot(_.isOn).foreach(_.tryStart())
    ordered.filter(_.isOn) match {
      case Some(o) =>
        appliedByValue += 1
        o.step()
      case None => plain()
    }
  }

  /** Applies the rules to all rows that changed. */
  private def plain(): Array[Double] = {
    hubs.foreach(_.run())
    parts.foreach { p =>
      p.takeDirty()
      p.currentSize = p.state.sortQueued(p.current, p.currentSize)
      p.count()
      p.rowsBefore = p.rows
    }
    runner.applyRules()
    def queued = parts.map(_.state.dirtySize).sum + hubs.fold(0)(_.waiting)
    rollOver.run(stats.votes(queued + exchange.sent, 0.0, 0.0, loop))
  }
}
