package org.apache.spark.sql.paralagg

import org.apache.spark.scheduler.SparkListenerEvent

/*
 * What a `SparkListener` hears of recursions by `onOtherEvent`, and what the event log keeps as JSON under the names of
 * these classes. `run` tells the runs of an application apart; `execution` is the SQL execution's id, -1 outside of one
 * (`df.rdd`). Times are milliseconds since 1970. docs/guide/seeing.md shows how to listen.
 */

/** A recursion is about to run. `limit`: its `max_iterations`, -1 for none. */
final case class FixpointStarted(
    run: Long, name: String, backend: String, execution: Long, tasks: Int, limit: Int, time: Long)
    extends SparkListenerEvent

/**
 * How far it is, at most ten times a second. `delta` rows were changed by this iteration, `changed` by all so far;
 * `total` rows there are; `bytes` were exchanged. `job` is Spark's number of the job that runs it, -1 before there is
 * one.
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

/** It is over; the numbers are those of its last iteration. Without success the seconds are not known: 0. */
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
