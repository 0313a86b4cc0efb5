package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.codegen.SumOverflow
import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.LoopState

/**
 * The exchange of derived rows, early if a task holds `limit` of them for others (Load-Balancing Parallel Relational
 * Algebra, section 3, iteration roll-over). That task suspends its rules, and all tasks exchange. An iteration ends with
 * the first exchange in which no task votes to continue, so rounds stay exact (docs/balance.md, "Early exchanges").
 */
private[loop] final class RollOver(
    stratum: StratumSpec, loop: LoopState, exchange: DeltaExchange, gang: Gang, stats: LoopStats, limit: Long) {
  private val parts = stratum.sentEarly.map(loop.parts(_))
  private val isOn = limit > 0 && gang.tasks > 1 && parts.exists(!_.isTraced)
  private val (none, maxima) = if (stratum.inPlace) (stats.none, stats.maxima) else (Array.emptyDoubleArray, 0)
  private var overflow: SumOverflow = _

  /** The number of exchanges that ended no iteration. */
  var early = 0

  /** Exchanges rows until the rules of all tasks have ended. Returns the sums of the last votes. Collective. */
  def run(votes: => Array[Double]): Array[Double] =
    if (!isOn) exchange.run(votes, maxima)
    else {
      var own = none
      var sums = Array(1.0)
      while (sums.last > 0) {
        if (stratum.inPlace) stats.retract(own, loop)
        sums = send { own = votes; own :+ 0.0 }
      }
      if (overflow != null) throw overflow // not earlier: other tasks may have continued
      sums.init
    }

  /** Exchanges rows, with a vote to continue, if this task has many for others. Collective with `run` of others. */
  def check(): Unit = if (isOn && ghosts >= limit) send(none :+ 1.0)

  private def send(votes: => Array[Double]): Array[Double] = {
    val (in, sums) = exchange.send(votes, maxima + 1)
    // All are sent. Those of a lattice are the best values sent, which are worth less than half of the limit.
    if (2 * ghosts > limit) parts.foreach(_.forgetGhosts())
    try exchange.receive(in)
    catch { case e: SumOverflow => overflow = e }
    if (sums.last > 0) early += 1
    sums
  }

  private def ghosts: Long = parts.map(_.ghosts.size.toLong).sum
}
