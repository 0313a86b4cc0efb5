package org.apache.spark.sql.paralagg.codegen

import org.apache.spark.sql.paralagg.load.Dictionary
import org.apache.spark.sql.paralagg.state.{Accumulator, LoopState}

/** Generated: all rules of one driver, applied to entries [`from`, `to`) of its delta. */
abstract class Kernel {
  def run(loop: LoopState, from: Int, to: Int): Unit
}

/** Generated: aggregation into one relation. */
abstract class Combiner {

  /** For the order of strings. */
  var strings: Dictionary = _

  /** Aggregates `count` rows of `rows`, `stride` words each from `at` on (values, then the null mask), into `ids` of `into`. */
  def rows(into: Accumulator, ids: Array[Int], rows: Array[Long], at: Int, stride: Int, count: Int): Unit

  /**
   * Aggregates all that is dirty in `from` into `into`, whose dirty list then holds what changed. Returns Σ|Δ| over
   * accumulating columns.
   */
  def apply(from: Accumulator, into: Accumulator): Double
}
