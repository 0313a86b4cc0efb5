package org.apache.spark.sql.paralagg.codegen

import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.load.FloatWord

/** Checked arithmetic on words, called by generated code. */
object Sums {

  def addLong(a: Long, b: Long): Long = {
    val sum = a + b
    if (((a ^ sum) & (b ^ sum)) < 0) throw overflow("a sum of bigint", a, b)
    sum
  }

  /** Adds integers of `bytes` < 8. */
  def addSmall(a: Long, b: Long, bytes: Int, ansi: Boolean): Long = {
    val sum = a + b
    val cut = sum << (64 - 8 * bytes) >> (64 - 8 * bytes)
    if (ansi && cut != sum) throw overflow(s"a sum of integers of $bytes bytes", a, b)
    cut
  }

  def addDecimal(a: Long, b: Long, precision: Int): Long = {
    val sum = addLong(a, b)
    if (math.abs(sum) >= math.pow(10, precision).toLong) throw overflow(s"a sum of decimals of $precision digits", a, b)
    sum
  }

  def addFloat(a: Long, b: Long): Long =
    FloatWord.word(java.lang.Float.intBitsToFloat(a.toInt) + java.lang.Float.intBitsToFloat(b.toInt))

  /** Returns the divisor of integers of `bytes`, never negative; that of the least number of a type may not fit. */
  def gcd(a: Long, b: Long, bytes: Int): Long = {
    var (x, y) = (a, b)
    while (y != 0) {
      val rest = x % y
      x = y
      y = rest
    }
    val positive = math.abs(x)
    if (positive < 0 || (bytes < 8 && positive >>> (8 * bytes - 1) != 0))
      throw overflow(s"a greatest common divisor of integers of $bytes bytes", a, b)
    positive
  }

  /** Throws the error of a user's aggregator that returns null. */
  def combinedToNull(aggregator: String): Unit = throw new ParalaggException(
    ErrorCodes.AggregatorNull, s"combine of the aggregator $aggregator returns null.",
    "return a value for any two values.")

  private def overflow(what: String, a: Long, b: Long) = new SumOverflow(what, a, b)
}

/** The overflow of a sum. */
class SumOverflow(what: String, a: Long, b: Long)
    extends ParalaggException(
      ErrorCodes.Overflow,
      s"$what overflows: $a + $b.",
      "a cycle makes counts and sums grow without end; else use a wider type (bigint, decimal, double).")
