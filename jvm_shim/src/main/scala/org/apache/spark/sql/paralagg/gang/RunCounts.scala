package org.apache.spark.sql.paralagg.gang

/**
 * How far a loop is: the last iteration, the rows that it changed and the rows that there are; then, of all iterations so far,
 * rows changed, bytes exchanged, and rows changed on the task that had most of them (`heaviest`).
 */
final case class RunCounts(iteration: Int, delta: Long, total: Long, changed: Long, bytes: Long, heaviest: Long) {

  /** Messages of gangs hold JDK types only. */
  def packed: Array[Long] = Array(iteration, delta, total, changed, bytes, heaviest)
}

object RunCounts {
  val None: RunCounts = RunCounts(0, 0, 0, 0, 0, 0)

  def unpacked(numbers: Array[Long]): RunCounts =
    RunCounts(numbers(0).toInt, numbers(1), numbers(2), numbers(3), numbers(4), numbers(5))
}
