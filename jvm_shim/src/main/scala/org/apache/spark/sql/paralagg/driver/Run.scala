package org.apache.spark.sql.paralagg.driver

import scala.collection.mutable

import org.json4s.JObject
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
 * One run of a fixpoint, as the driver knows it. What it hears of an iteration it tells Spark's UI and listeners a few times a
 * second; Python asks for it (`state`).
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
  private val posted = mutable.Map.from(metrics.values.map(m => m.id -> m.value)) // by an earlier start of ranks
  private var counts = RunCounts.None
  private var phase = Running
  private var seconds = 0.0
  private var attempt = -1
  private var joined = 0
  private var ended = false
  private var warned = false

  /** The job that runs it, once there is one. */
  @volatile var job: Int = -1

  private def climbLimit: Option[Int] = spec.program.climbLimit
  private def name: String = spec.program.name
  private def backend: String = spec.offload.fold("spark")(_.backend)
  private def execution: Long = Option(executionId).fold(-1L)(_.toLong)

  def begin(): Unit = tell(
    FixpointStarted(id, name, backend, execution, tasks, spec.program.maxIterations.getOrElse(-1), now()))

  def progress(heard: RunCounts): Unit = synchronized {
    counts = heard
    phase = Running // also where a stage that was through runs again
    metrics("iterations").set(heard.iteration)
    metrics("delta").set(heard.delta)
    metrics("tuples").set(heard.total)
    metrics("bytes").set(heard.bytes)
    if (heard.changed > 0) metrics("balance").set(math.round(100.0 * heard.heaviest * tasks / heard.changed))
    if (!warned && climbLimit.isDefined && heard.iteration > math.max(Patience, heard.total)) {
      warned = true
      logWarning(
        s"$name: values still change after ${heard.iteration} iterations, more than there are keys; the run goes on to " +
          s"${climbLimit.get} iterations (spark.paralagg.climb.maxIterations)")
    }
    if (System.nanoTime() - lastPost > PostNanos) post()
  }

  /** The loop is through and the result stored. */
  def succeeded(end: RunSummary): Unit = synchronized {
    // Bitmaps tell of no iterations, and ranks not of each.
    progress(counts.copy(iteration = end.iterations, total = end.tuples))
    Seq("load" -> end.load, "loop" -> end.loop, "store" -> end.store).foreach { case (phase, seconds) =>
      metrics(phase).set(math.round(1000 * seconds))
    }
    post()
    finish(Done, end)
  }

  /** The query is over; whether that is news, since the run had not succeeded. */
  def end(): Boolean = synchronized {
    val isNews = phase == Running
    if (isNews) finish(Failed, RunSummary.None)
    ended = true
    notifyAll()
    isNews
  }

  /** For Python, which knows what the names mean (`pyspark_paralagg/report/progress.py`). */
  def state: JObject = synchronized {
    ("run" -> id) ~ ("name" -> name) ~ ("backend" -> backend) ~ ("state" -> phase) ~
      ("limit" -> spec.program.maxIterations) ~ ("iteration" -> counts.iteration) ~ ("delta" -> counts.delta) ~
      ("total" -> counts.total) ~ ("changed" -> counts.changed) ~ ("bytes" -> counts.bytes) ~
      ("seconds" -> (if (phase == Running) elapsed else seconds))
  }

  /** The status store adds up whatever the driver posts, so each post says what has been added since the one before. */
  private def post(): Unit = {
    lastPost = System.nanoTime()
    val added = metrics.values.map(m => m.id -> (m.value - posted(m.id))).filter(_._2 != 0).toSeq
    if (executionId != null && added.nonEmpty) {
      metrics.values.foreach(m => posted(m.id) = m.value)
      tell(SparkListenerDriverAccumUpdates(execution, added))
    }
    val c = counts
    if (c.iteration > 0)
      tell(FixpointProgress(id, name, execution, job, c.iteration, c.delta, c.total, c.changed, c.bytes, now()))
  }

  private def finish(how: String, end: RunSummary): Unit = {
    phase = how
    seconds = elapsed
    val c = counts
    tell(FixpointEnded(
        id,
        name,
        execution,
        how == Done,
        c.iteration,
        c.total,
        c.changed,
        c.bytes,
        end.load,
        end.loop,
        end.store,
        now()))
  }

  private def tell(event: SparkListenerEvent): Unit = sc.listenerBus.post(event)
  private def now(): Long = System.currentTimeMillis()
  private def elapsed: Double = (System.nanoTime() - started) / 1e9

  def arrived(attempt: Int, count: Int): Unit = synchronized {
    this.attempt = attempt
    joined = count
    notifyAll()
  }

  /** Whether this attempt of the gang's stage is still to begin. */
  def isWaiting(attempt: Int): Boolean = synchronized {
    !ended && (this.attempt < attempt || this.attempt == attempt && joined < tasks)
  }

  def awaitStart(attempt: Int, millis: Long): Unit = synchronized {
    val until = System.nanoTime() + millis * 1000000L
    var left = millis
    while (isWaiting(attempt) && left > 0) {
      wait(left)
      left = (until - System.nanoTime()) / 1000000L
    }
  }

  def sayWaiting(attempt: Int): Unit = logWarning(
    s"$name: waiting for $tasks slots at the same moment; ${if (this.attempt < attempt) 0 else joined} tasks " +
      s"have one, ${(System.nanoTime() - started) / 1000000000L} s after the query began. A gang starts when all of its " +
      "tasks can run.")
}

private object Run {
  private val Patience = 100L
  private val PostNanos = 100L * 1000 * 1000
  private val Running = "running"
  private val Done = "done"
  private val Failed = "failed"
}
