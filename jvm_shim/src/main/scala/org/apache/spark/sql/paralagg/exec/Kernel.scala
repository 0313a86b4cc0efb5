package org.apache.spark.sql.paralagg.exec

/**
 * Everything that generated code reaches: parts, indexes, resolved targets, strings. One a task.
 *
 * @param baseIds ids of the base rows: by relation, by block, by row
 */
final class LoopState(
    val me: Int,
    val tasks: Int,
    val strings: Dictionary,
    val parts: Array[RelationPart],
    val statics: Map[Int, StaticIndex],
    val indexes: Map[Int, RelationIndex],
    val resolved: Array[Array[Int]],
    val baseIds: Array[Array[Array[Int]]]) {
  def part(relation: Int): RelationPart = parts(relation)
  def staticIndex(index: Int): StaticIndex = statics(index)
  def relationIndex(index: Int): RelationIndex = indexes(index)

  /** Ready for a traced run from the start, with the ids and indexes that are there. */
  def restartTraced(): Unit = {
    parts.foreach(_.restartTraced())
    indexes.values.foreach { i =>
      if (i.spec.copy) i.part.restartTraced()
      i.clear()
    }
  }
}

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
