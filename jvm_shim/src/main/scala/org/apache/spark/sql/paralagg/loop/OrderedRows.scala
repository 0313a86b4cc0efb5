package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.state.{Accumulator, RelationPart}

/**
 * The changed rows of a relation in two lists: *near* rows have a cost within `limit`, *far* rows a higher one
 * (Davidson et al. 2014, "near-far"; two buckets of delta-stepping). A far row has the flag `InDelta`, which a run in
 * place does not use otherwise.
 */
private[loop] final class OrderedRows(part: RelationPart, order: RowOrder) {
  import Accumulator._

  private val state = part.state
  private var far = new Array[Int](state.capacity)
  var near = new Array[Int](state.capacity)
  var nearSize = 0
  var farSize = 0

  private var limit = Double.NegativeInfinity

  /** No far row has a lower cost than `best`; it may be the cost of a row that was applied since. */
  var best: Double = Double.PositiveInfinity

  /** The near rows after the last move of the limit. */
  var taken = 0

  /** A cost that no far row is below: `best`, or the limit. */
  def bound: Double = math.max(if (farSize > 0) best else Double.PositiveInfinity, limit)

  /** Forgets all rows and the limit. */
  def clear(): Unit = {
    nearSize = 0
    farSize = 0
    taken = 0
    limit = Double.NegativeInfinity
    best = Double.PositiveInfinity
  }

  /** Moves the rows of the state's dirty list to one of the lists; counts new rows. */
  def takeChanged(): Unit = {
    val (flags, dirty, n) = (state.flags, state.dirty, state.dirtySize)
    var i = 0
    while (i < n) {
      val id = dirty(i)
      val flag = flags(id)
      if ((flag & Counted) == 0) part.rows += 1
      val counted = (flag | Counted) & ~Settled
      val cost = order.cost(state, id)
      if (cost <= limit) {
        flags(id) = counted.toByte
        near(nearSize) = id
        nearSize += 1
      } else {
        if (cost < best) best = cost
        if ((flag & InDelta) == 0) {
          far(farSize) = id
          farSize += 1
        }
        flags(id) = (counted & ~Queued | InDelta).toByte
      }
      i += 1
    }
    state.dirtySize = 0
  }

  /** Raises the limit to `next`; makes far rows within it near, and drops those that were applied in the meantime. */
  def moveLimit(next: Double): Unit = {
    val applied = limit
    limit = next
    if (best <= next) takeFar(applied)
    taken = nearSize
  }

  private def takeFar(applied: Double): Unit = {
    val flags = state.flags
    best = Double.PositiveInfinity
    var kept = 0
    var i = 0
    while (i < farSize) {
      val id = far(i)
      val cost = order.cost(state, id)
      if (cost <= applied) flags(id) = (flags(id) & ~InDelta).toByte
      else if (cost <= limit) {
        flags(id) = (flags(id) & ~InDelta | Queued).toByte
        near(nearSize) = id
        nearSize += 1
      } else {
        if (cost < best) best = cost
        far(kept) = id
        kept += 1
      }
      i += 1
    }
    farSize = kept
  }

  /** Makes the near rows the delta that kernels read. */
  def applyNear(): Unit = {
    part.current = near
    part.currentSize = state.sortQueued(near, nearSize)
    nearSize = 0
  }

  /** Puts all rows of both lists back on the state's dirty list. */
  def release(): Unit = {
    near.take(nearSize).foreach(id => state.flags(id) = (state.flags(id) | Queued).toByte)
    far.take(farSize).foreach(id => state.flags(id) = (state.flags(id) & ~InDelta | Queued).toByte)
    nearSize = 0
    farSize = 0
    best = Double.PositiveInfinity
    state.dirtySize = state.listQueued(state.dirty)
  }
}
