package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.LoopState

/**
 * Passes that apply the best rows first, as delta-stepping does (twin of `mpi_backend/loop/ordered.py`).
 *
 * A task applies its near rows until there are none. Then its limit moves by the width 2^round(log2(mean change / mean
 * degree)), which one plain pass measures. With several tasks the votes of each exchange tell how far all may move
 * their limits, so that a move needs no meeting of its own. There, values that rules only copy are ordered too, with
 * the mean distance of the first values as the width: in their order, each copied value has to be copied only once.
 */
private[loop] final class OrderedPasses(
    stratum: StratumSpec, loop: LoopState, runner: Runner, exchange: DeltaExchange, hubs: Option[HubRows], gang: Gang,
    stats: LoopStats) {
  import OrderedPasses._

  private val part = loop.parts.head
  private val order = new RowOrder(part, stratum.orderedBy)
  private val isAlone = gang.tasks == 1
  private var canStart = !(isAlone && stratum.copiesOrder) // plain passes, which read what they write, are faster
  private var rows: OrderedRows = _
  private var width = 0.0
  private var mean = Double.NaN
  private var passes = 0L
  private var maxPasses = 0L

  /** The cost to which this task may move its limit; NaN: no move is allowed. */
  private var next = Double.NaN
  private var mayMove = false

  /** The rows that all tasks have applied since the limit moved. */
  private var sinceMove = 0.0
  private var applied = 0

  def isOn: Boolean = rows != null

  /** Starts if the width is known. Collective. */
  def tryStart(): Unit = if (canStart) {
    val costs = order.summary(part.state)
    val edges = loop.statics.values.map(_.rows.toDouble).sum
    val votes = Array(costs.count, costs.sum, edges, part.keys.size.toDouble, -costs.least, costs.greatest)
    val Array(count, sum, allEdges, keys, negatedLeast, greatest) = gang.allreduce(votes, maxima = 2)
    width = if (stratum.copiesOrder) (greatest + negatedLeast) / math.max(1.0, count)
    else change(sum / count, allEdges / math.max(1.0, keys))
    if (width > 0 && !width.isInfinite) {
      rows = new OrderedRows(part, order)
      next = width - negatedLeast
      mayMove = true
      maxPasses = MaxPassesPerKey * keys.toLong + MinPasses
    }
  }

  /** Prepares for other base rows, with the same width. */
  def reset(): Unit = if (isOn) {
    rows.clear()
    passes = 0
  }

  /** Puts all waiting rows on the state's dirty list, as plain passes expect them. */
  def release(): Unit = if (isOn) rows.release()

  /** Runs an iteration: one pass of a single task; with several tasks, passes until enough rows were applied. */
  def step(): Array[Double] = {
    hubs.foreach(_.run())
    applyNear()
    part.currentSize = applied
    def left = rows.nearSize + rows.farSize + part.state.dirtySize + exchange.sent + hubs.fold(0)(_.waiting)
    def own = stats.votes(left, 0.0, 0.0, loop)
    if (isAlone) {
      val sums = gang.allreduce(own, stats.maxima)
      if (passes > maxPasses) fallBack()
      sums
    } else {
      val reachedMost = if (passes > maxPasses) 1.0 else 0.0
      val best = bound
      def votes = Array(applied.toDouble, rows.farSize.toDouble) ++ own ++ Array(reachedMost, -best)
      val sums = exchange.run(votes, stats.maxima + 2)
      decide(sums(0), sums(1), sums(sums.length - 2) > 0, -sums.last)
      sums.slice(2, sums.length - 2)
    }
  }

  private def applyNear(): Unit = {
    val most = if (isAlone) 0 else gang.rowsPerExchange
    applied = 0
    rows.takeChanged()
    part.rowsBefore = part.rows
    var isActive = true
    while (isActive) {
      if (rows.nearSize == 0 || isWorthMoving) isActive = move()
      if (applied > 0 && applied + rows.nearSize > most || passes > maxPasses) isActive = false
      if (isActive && rows.nearSize > 0) {
        passes += 1
        applied += rows.nearSize
        rows.applyNear()
        runner.applyRules()
        rows.takeChanged()
      }
    }
  }

  /** Tests whether too few rows are left for a pass, and more may be made near. */
  private def isWorthMoving: Boolean =
    !isAlone && Few * rows.nearSize < rows.taken && applied == 0 && rows.farSize > 0 && rows.best <= next

  /** Moves the limit; returns false if this task may not move it before the next exchange, or has no far row. */
  private def move(): Boolean = {
    val to = if (isAlone) rows.best + width else next
    val isAllowed = rows.farSize > 0 && (isAlone || !to.isNaN && applied == 0)
    if (isAllowed) {
      next = Double.NaN
      rows.moveLimit(to)
      if (isAlone && Sparse * rows.taken < rows.farSize) width *= 2
    }
    isAllowed && (isAlone || rows.nearSize > 0)
  }

  /** A cost that no far row, of this task or sent, is below. */
  private def bound: Double = {
    var best = rows.bound
    val ghost = part.ghost
    var i = 0
    while (i < ghost.dirtySize) {
      best = math.min(best, order.cost(ghost, ghost.dirty(i)))
      i += 1
    }
    best
  }

  /** Decides how far all tasks may move their limits. */
  private def decide(appliedByAll: Double, far: Double, reachedMost: Boolean, bound: Double): Unit =
    if (reachedMost) fallBack()
    else {
      if (mayMove && next.isNaN) { // the limit has moved
        if (0 < sinceMove && sinceMove < math.max(far / Sparse, MinRowsPerMove * gang.tasks)) width *= 2
        sinceMove = 0.0
      }
      sinceMove += appliedByAll
      next = if (far == 0) Double.NaN else bound + width
      mayMove = !next.isNaN
    }

  private def fallBack(): Unit = {
    rows.release()
    rows = null
    canStart = false
  }

  /** Returns the width by the change of the mean cost since the last pass; 0 at the first pass. */
  private def change(latestMean: Double, degree: Double): Double = {
    val perEdge = math.abs(latestMean - mean) / math.max(1.0, degree)
    mean = latestMean
    if (perEdge > 0) math.pow(2, math.rint(math.log(perEdge) / math.log(2))) * (if (isAlone) AloneFactor else 1)
    else 0.0
  }
}

private[loop] object OrderedPasses {

  /** After so many passes for each key, plain passes continue: they detect an endless climb. */
  private val MaxPassesPerKey = 4L
  private val MinPasses = 100L

  /** The width of a single task is larger: fewer moves are faster, until rows are applied too early. */
  private val AloneFactor = 4

  /** With several tasks the limit also moves if near rows are fewer than 1/Few of those of the last move. */
  private val Few = 32

  /** If a move makes fewer than 1/Sparse of the far rows near, the width doubles. */
  private val Sparse = 8

  /** The rows of each task that a move should make near: it costs an exchange. */
  private val MinRowsPerMove = 256
}
