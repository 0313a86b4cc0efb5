package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.{Accumulator, RelationPart}
import org.apache.spark.sql.types._

/** The update of a relation between two rounds. */
object Rounds {
  import Accumulator._

  /** Replaces the rows by the pending ones (iterated). Returns the number of changed rows, and Σ|Δ| of sums. */
  def replace(p: RelationPart): (Long, Double) = {
    val (old, fresh) = (p.state, p.pending)
    var changed = 0L
    var kept = 0L
    var difference = 0.0
    var i = 0
    while (i < fresh.dirtySize) {
      val id = fresh.dirty(i)
      val isOld = (old.flags(id) & Present) != 0
      if (isOld) kept += 1
      var isSame = isOld
      var j = 0
      while (j < fresh.columns.length) {
        val isNull = fresh.valid(j) != null && fresh.valid(j)(id) == 0
        val wasNull = !isOld || (old.valid(j) != null && old.valid(j)(id) == 0)
        if (isNull != wasNull || (!isNull && fresh.columns(j)(id) != old.columns(j)(id))) {
          isSame = false
          difference += math.abs(summand(p, fresh, j, id) - summand(p, old, j, id))
        }
        j += 1
      }
      if (!isSame) changed += 1
      i += 1
    }
    changed += p.rows - kept // rows that are no longer derived
    if (p.rows > kept) {
      for (i <- 0 until old.dirtySize; id = old.dirty(i) if (fresh.flags(id) & Present) == 0;
        j <- fresh.columns.indices)
        difference += math.abs(summand(p, old, j, id))
    }
    p.state = fresh
    p.pending = old
    old.clearDirty()
    readAll(p)
    (changed, difference)
  }

  /** Makes all rows the delta of the next application; the state's dirty list stays, as the list of all rows. */
  def readAll(p: RelationPart): Unit = {
    val rows = p.state
    if (p.current.length < rows.capacity) p.current = new Array[Int](rows.capacity)
    System.arraycopy(rows.dirty, 0, p.current, 0, rows.dirtySize)
    p.currentSize = rows.dirtySize
    p.rows = rows.dirtySize
  }

  /** Adds a row of a checkpoint, whose values are in the state already, to the lists that the loop reads. */
  def restore(p: RelationPart, id: Int, isDelta: Boolean, stratum: StratumSpec): Unit = {
    if (stratum.isIterated) p.state.enqueue(id)
    else if (isDelta && stratum.inPlace) p.state.enqueue(id)
    else if (isDelta) {
      if (p.delta != null) p.delta.enqueue(id)
      if (p.current.length <= p.currentSize)
        p.current = java.util.Arrays.copyOf(p.current, math.max(16, p.currentSize * 2))
      p.current(p.currentSize) = id
      p.currentSize += 1
    }
  }

  /** Makes the pending rows the delta of the next application, and reuses the old delta as the pending rows. */
  def swapDelta(p: RelationPart): Unit = {
    val applied = p.delta
    p.delta = p.pending
    applied.clearDirty()
    p.pending = applied
  }

  def mark(p: RelationPart): Unit = p.setFlags(clear = Queued, set = InDelta)
  def unmark(p: RelationPart): Unit = p.setFlags(clear = InDelta)

  /** The value of a sum; 0 for null, for a row that does not exist, and for other aggregates. */
  private def summand(p: RelationPart, rows: Accumulator, column: Int, id: Int): Double = {
    val d = p.spec.dependents(column)
    val isNull = rows.valid(column) != null && rows.valid(column)(id) == 0
    if (!d.isSum || isNull || (rows.flags(id) & Present) == 0) 0.0
    else number(d.column.dataType, rows.columns(column)(id))
  }

  private def number(t: DataType, word: Long): Double = t match {
    case DoubleType => java.lang.Double.longBitsToDouble(word)
    case FloatType => java.lang.Float.intBitsToFloat(word.toInt)
    case d: DecimalType => word / math.pow(10, d.scale)
    case _ => word.toDouble
  }
}
