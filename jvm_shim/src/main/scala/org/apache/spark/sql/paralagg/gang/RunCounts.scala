package org.apache.spark.sql.paralagg.gang

/**
 * The progress of a loop: the last iteration, the rows that it changed (`delta`), all rows (`total`). Then, over all
 * iterations: rows changed, bytes exchanged, rows changed on the task with most of them (`heaviest`).
 */
final case class RunCounts(
    iteration: Int = 0,
    delta: Long = 0,
    total: Long = 0,
    changed: Long = 0,
    bytes: Long = 0,
    heaviest: Long = 0)
