package org.apache.spark.sql.paralagg.driver

import scala.collection.mutable

import org.json4s._
import org.json4s.JsonDSL._

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates
import org.apache.spark.sql.paralagg.{FixpointEnded, FixpointProgress, FixpointStarted}
import org.apache.spark.sql.paralagg.gang.RunCounts
import org.apache.spark.sql.paralagg.plan.FixpointSpec

/**
 * One run of a fixpoint on the driver. It posts its progress to Spark's UI and listeners a few times a second; Python
 * polls `state`.
 */
private[paralagg] final class Run(
    val id: Long,
    val spec: FixpointSpec,
    val tasks: Int,
    sc: SparkContext,
    val executionId: String,
    metrics: Map[String, SQLMetric])
    extends Logging {
  import Run._

  private val started = System.nanoTime()
  private var lastPost = 0L
  private val posted =
    mutable.Map(metrics.values.map(m => m.id -> m.value).toSeq: _*) // not 0 after an earlier start of ranks
  private var counts = RunCounts()
  private var phase = Running
  private var seconds = 0.0
  private var attempt = -1
  private var joinedTasks = 0
  private var isEnded = false
  private var hasWarned = false

  /** The job that runs it; -1 before there is one. */
  @volatile var job: Int = -1

  private def climbLimit: Option[Int] = spec.program.climbLimit
  private def name: String = spec.program.name
  private def backend: String = spec.offload.fold("spark")(_.backend)
  private def execution: Long = Option(executionId).fold(-1L)(_.toLong)

  def begin(): Unit = send(
    FixpointStarted(id, name, backend, execution, tasks, spec.program.maxIterations.getOrElse(-1), now()))

  def progress(latest: RunCounts): Unit = synchronized {
    counts = latest
    phase = Running // again, if a finished stage is retried
    metrics("iterations").set(latest.iteration)
    metrics("delta").set(latest.delta)
    metrics("tuples").set(latest.total)
    metrics("bytes").set(latest.bytes)
    if (latest.changed > 0) metrics("balance").set(math.round(100.0 * latest.heaviest * tasks / latest.changed))
    if (!hasWarned && climbLimit.isDefined && latest.iteration > math.max(MinClimb, latest.total)) {
      hasWarned = true
      logWarning(
        s"$name: values still change after ${latest.iteration} iterations, more than there are keys; the run goes on to " +
          s"${climbLimit.get} iterations (spark.paralagg.climb.maxIterations)")
    }
    if (System.nanoTime() - lastPost > PostNanos) post()
  }

  /** Records the end of the loop, after the result is stored, with the report of the gang or of the ranks. */
  def succeeded(report: JValue): Unit = synchronized {
    // Bitmaps report no iterations, and ranks not every one.
    progress(counts.copy(
        iteration = (report \ "iterations").extractOrElse(0), total = (report \ "tuples").extractOrElse(0L)))
    val times = Phases.map(phase => (report \ "seconds" \ phase).extractOrElse(0.0))
    Phases.zip(times).foreach { case (phase, time) => metrics(phase).set(math.round(1000 * time)) }
    post()
    finish(Done, times)
  }

  /** Ends the run with its query; returns true if it had not succeeded before. */
  def end(): Boolean = synchronized {
    val isUnfinished = phase == Running
    if (isUnfinished) finish(Failed, Phases.map(_ => 0.0))
    isEnded = true
    isUnfinished
  }

  /** Returns the state for Python (`pyspark_paralagg/report/progress.py`). */
  def state: JObject = synchronized {
    ("run" -> id) ~ ("name" -> name) ~ ("backend" -> backend) ~ ("state" -> phase) ~
      ("limit" -> spec.program.maxIterations) ~ ("iteration" -> counts.iteration) ~ ("delta" -> counts.delta) ~
      ("total" -> counts.total) ~ ("changed" -> counts.changed) ~ ("bytes" -> counts.bytes) ~
      ("seconds" -> (if (phase == Running) elapsed else seconds))
  }

  /** Posts metrics and progress. The status store sums all posts, so each one has the differences to the one before. */
  private def post(): Unit = {
    lastPost = System.nanoTime()
    val added = metrics.values.map(m => m.id -> (m.value - posted(m.id))).filter(_._2 != 0).toSeq
    if (executionId != null && added.nonEmpty) {
      metrics.values.foreach(m => posted(m.id) = m.value)
      send(SparkListenerDriverAccumUpdates(execution, added))
    }
    val c = counts
    if (c.iteration > 0)
      send(FixpointProgress(id, name, execution, job, c.iteration, c.delta, c.total, c.changed, c.bytes, now()))
  }

  private def finish(finalPhase: String, times: Seq[Double]): Unit = {
    phase = finalPhase
    seconds = elapsed
    val c = counts
    val Seq(load, loop, store) = times
    send(
      FixpointEnded(id, name, execution, phase == Done, c.iteration, c.total, c.changed, c.bytes, load, loop, store,
        now()))
  }

  private def send(event: SparkListenerEvent): Unit = sc.listenerBus.post(event)
  private def now(): Long = System.currentTimeMillis()
  private def elapsed: Double = (System.nanoTime() - started) / 1e9

  def arrived(attempt: Int, count: Int): Unit = synchronized {
    this.attempt = attempt
    joinedTasks = count
  }

  /** Tests whether this attempt of the gang's stage has not begun yet. */
  def isWaiting(attempt: Int): Boolean = synchronized {
    !isEnded && (this.attempt < attempt || this.attempt == attempt && joinedTasks < tasks)
  }

  def logWaiting(attempt: Int): Unit = logWarning(
    s"$name: waiting for $tasks slots at the same time; ${if (this.attempt < attempt) 0 else joinedTasks} tasks " +
      s"have one, ${(System.nanoTime() - started) / 1000000000L} s after the query began. A gang starts when all of its " +
      "tasks can run.")
}

private object Run {
  private val MinClimb = 100L
  private val PostNanos = 100L * 1000 * 1000
  private val Running = "running"
  private val Done = "done"
  private val Failed = "failed"
  private val Phases = Seq("load", "loop", "store")
  private implicit val formats: Formats = DefaultFormats
}
