package org.apache.spark.sql.paralagg

import org.apache.spark.scheduler.SparkListenerEvent

/*
 * The events of recursions, which a `SparkListener` receives in `onOtherEvent`, and the event log stores as JSON under
 * these class names. `run` identifies a run of the application; `execution` is the SQL execution's id, -1 outside of
 * one (`df.rdd`). Times are milliseconds since 1970. docs/guide/seeing.md shows a listener.
 */

/** The start of a run. `limit` is its `max_iterations`, -1 for none. */
final case class FixpointStarted(
    run: Long, name: String, backend: String, execution: Long, tasks: Int, limit: Int, time: Long)
    extends SparkListenerEvent

/**
 * The progress of a run, at most ten times a second. This iteration changed `delta` rows, all so far `changed`; `total`
 * is the number of rows, `bytes` were exchanged. `job` is the id of Spark's job, -1 before there is one.
 */
final case class FixpointProgress(
    run: Long,
    name: String,
    execution: Long,
    job: Int,
    iteration: Int,
    delta: Long,
    total: Long,
    changed: Long,
    bytes: Long,
    time: Long)
    extends SparkListenerEvent

/** The end of a run, with the numbers of its last iteration. Without success the seconds are 0. */
final case class FixpointEnded(
    run: Long,
    name: String,
    execution: Long,
    succeeded: Boolean,
    iterations: Int,
    total: Long,
    changed: Long,
    bytes: Long,
    loadSeconds: Double,
    loopSeconds: Double,
    storeSeconds: Double,
    time: Long)
    extends SparkListenerEvent
