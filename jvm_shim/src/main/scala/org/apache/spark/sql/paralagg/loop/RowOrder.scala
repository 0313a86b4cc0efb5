package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.plan.Merge
import org.apache.spark.sql.paralagg.state.{Accumulator, RelationPart}
import org.apache.spark.sql.types.{DoubleType, FloatType}

/**
 * The order of a relation's rows by the dependent column `column`: a better value has a lower *cost*. Costs of large
 * integers are rounded. That is enough, because a row may be applied at any time.
 */
private[loop] final class RowOrder(part: RelationPart, column: Int) {
  private val spec = part.spec.dependents(column)
  private val isDouble = spec.column.dataType == DoubleType
  private val isFloat = spec.column.dataType == FloatType
  private val sign = if (spec.merging.merge == Merge.Greater) -1.0 else 1.0

  /** Returns the cost of row `id` of `rows`; that of NaN, Spark's largest number, is infinite. */
  def cost(rows: Accumulator, id: Int): Double = {
    val word = rows.columns(column)(id)
    val value =
      if (isDouble) java.lang.Double.longBitsToDouble(word)
      else if (isFloat) java.lang.Float.intBitsToFloat(word.toInt).toDouble
      else word.toDouble
    sign * (if (value == value) value else Double.PositiveInfinity)
  }

  /** Returns the number, sum, least and greatest cost of the changed rows of `rows`, without infinite ones. */
  def summary(rows: Accumulator): CostSummary = {
    var count = 0L
    var sum = 0.0
    var least = Double.PositiveInfinity
    var greatest = Double.NegativeInfinity
    var i = 0
    while (i < rows.dirtySize) {
      val c = cost(rows, rows.dirty(i))
      if (!c.isInfinite) {
        count += 1
        sum += c
        least = math.min(least, c)
        greatest = math.max(greatest, c)
      }
      i += 1
    }
    CostSummary(count.toDouble, sum, least, greatest)
  }
}

private[loop] case class CostSummary(count: Double, sum: Double, least: Double, greatest: Double)
