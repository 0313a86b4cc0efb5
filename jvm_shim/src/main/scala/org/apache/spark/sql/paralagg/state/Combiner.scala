package org.apache.spark.sql.paralagg.state

/** The parent of generated combiners, which aggregate into one relation. */
abstract class Combiner {

  /** Aggregates `count` rows into `ids`; a row is `stride` words from `at` on (values, null mask, parent). */
  def rows(into: Accumulator, ids: Array[Int], rows: Array[Long], at: Int, stride: Int, count: Int): Unit

  /**
   * Aggregates the dirty rows of `from` into `into`, whose dirty list then has the changed rows. Returns Σ|Δ| of
   * accumulating columns.
   */
  def apply(from: Accumulator, into: Accumulator): Double
}
