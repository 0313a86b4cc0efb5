package org.apache.spark.sql.paralagg.gang

/**
 * The progress of a loop: the last iteration, the rows that it changed (`delta`), all rows (`total`). Then, over all
 * iterations: rows changed, bytes exchanged, rows changed on the task with most of them (`heaviest`).
 */
final case class RunCounts(iteration: Int, delta: Long, total: Long, changed: Long, bytes: Long, heaviest: Long) {

  /** Encodes the counts for a message: messages of gangs hold JDK types only. */
  def packed: Array[Long] = Array(iteration, delta, total, changed, bytes, heaviest)
}

object RunCounts {
  val None: RunCounts = RunCounts(0, 0, 0, 0, 0, 0)

  def unpacked(numbers: Array[Long]): RunCounts =
    RunCounts(numbers(0).toInt, numbers(1), numbers(2), numbers(3), numbers(4), numbers(5))
}
