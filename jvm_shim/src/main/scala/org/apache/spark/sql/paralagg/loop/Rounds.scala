package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.load.Dictionary
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.{Accumulator, RelationPart}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** What happens to a relation between two rounds. */
object Rounds {
  import Accumulator._

  /** The pending rows become the rows (iterated). Returns how many rows changed, and Σ|Δ| of accumulating columns. */
  def replace(p: RelationPart): (Long, Double) = {
    val (old, fresh) = (p.state, p.pending)
    var changed = 0L
    var kept = 0L
    var difference = 0.0
    var i = 0
    while (i < fresh.dirtySize) {
      val id = fresh.dirty(i)
      val was = (old.flags(id) & Present) != 0
      if (was) kept += 1
      var same = was
      var j = 0
      while (j < fresh.columns.length) {
        val isNull = fresh.valid(j) != null && fresh.valid(j)(id) == 0
        val wasNull = !was || (old.valid(j) != null && old.valid(j)(id) == 0)
        if (isNull != wasNull || (!isNull && fresh.columns(j)(id) != old.columns(j)(id))) {
          same = false
          difference += math.abs(summand(p, fresh, j, id) - summand(p, old, j, id))
        }
        j += 1
      }
      if (!same) changed += 1
      i += 1
    }
    changed += p.rows - kept // rows that are no longer derived
    if (p.rows > kept) {
      for (i <- 0 until old.dirtySize; id = old.dirty(i) if (fresh.flags(id) & Present) == 0; j <- fresh.columns.indices)
        difference += math.abs(summand(p, old, j, id))
    }
    p.state = fresh
    p.pending = old
    old.clearDirty()
    readAll(p)
    (changed, difference)
  }

  /** The next application reads every row; the state's dirty list stays, it says which rows there are. */
  def readAll(p: RelationPart): Unit = {
    val rows = p.state
    if (p.current.length < rows.capacity) p.current = new Array[Int](rows.capacity)
    System.arraycopy(rows.dirty, 0, p.current, 0, rows.dirtySize)
    p.currentSize = rows.dirtySize
    p.rows = rows.dirtySize
  }

  /** A row of a checkpoint is in the state already; puts it on the lists where the loop expects it. */
  def restore(p: RelationPart, id: Int, isDelta: Boolean, stratum: StratumSpec): Unit = {
    def list(a: Accumulator): Unit = {
      a.flags(id) = (a.flags(id) | Queued | Present).toByte
      a.dirty(a.dirtySize) = id
      a.dirtySize += 1
    }
    if (stratum.isIterated) list(p.state)
    else if (isDelta && stratum.inPlace) list(p.state)
    else if (isDelta) {
      if (p.delta != null) list(p.delta)
      if (p.current.length <= p.currentSize)
        p.current = java.util.Arrays.copyOf(p.current, math.max(16, p.currentSize * 2))
      p.current(p.currentSize) = id
      p.currentSize += 1
    }
  }

  /** What was pending is the delta that the next application reads; the old delta's room is used again. */
  def swapDelta(p: RelationPart): Unit = {
    val applied = p.delta
    p.delta = p.pending
    applied.clearDirty()
    p.pending = applied
  }

  def mark(p: RelationPart): Unit = {
    var i = 0
    while (i < p.currentSize) {
      val id = p.current(i)
      p.state.flags(id) = ((p.state.flags(id) & ~Queued) | InDelta).toByte
      i += 1
    }
  }

  def unmark(p: RelationPart): Unit = {
    var i = 0
    while (i < p.currentSize) {
      val id = p.current(i)
      p.state.flags(id) = (p.state.flags(id) & ~InDelta).toByte
      i += 1
    }
  }

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

/** Keys as a person wrote them, for messages. */
object KeyText {
  def of(p: RelationPart, id: Int, strings: Dictionary): String = {
    val k = p.spec.keys.length
    val mask = if (p.shape.hasNullKeys) p.keys.word(id, k) else 0L
    val columns = (0 until k).map { c =>
      val word = p.keys.word(id, c)
      val text = if ((mask >> c & 1) != 0) "null" else value(p.spec.keys(c).dataType, word, strings)
      s"${p.spec.keys(c).name}=$text"
    }
    columns.mkString("(", ", ", ")")
  }

  private def value(t: DataType, word: Long, strings: Dictionary): String = t match {
    case _: StringType => strings.get(word.toInt).toString
    case DoubleType => java.lang.Double.longBitsToDouble(word).toString
    case FloatType => java.lang.Float.intBitsToFloat(word.toInt).toString
    case BooleanType => (word != 0).toString
    case d: DecimalType => java.math.BigDecimal.valueOf(word, d.scale).toPlainString
    case DateType => java.time.LocalDate.ofEpochDay(word).toString
    case _ => word.toString
  }
}
