package org.apache.spark.sql.paralagg.exec

import java.util.Collections
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import org.json4s.{JObject, JString}
import org.json4s.jackson.JsonMethods.{compact, parse}

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates
import org.apache.spark.sql.paralagg.plan.FixpointSpec

/** What the driver knows of runs: live metrics while one goes on, the report of the last one of each fixpoint after it. */
object RunRegistry extends Logging {

  final class Run(
      val id: Long,
      val spec: FixpointSpec,
      val tasks: Int,
      sc: SparkContext,
      val executionId: String,
      metrics: Map[String, SQLMetric]) {
    private val started = System.nanoTime()
    private var lastPost = 0L
    private val posted = scala.collection.mutable.Map.empty[Long, Long].withDefaultValue(0L)
    private var attempt = -1
    private var joined = 0
    private var ended = false

    /** The job that runs the gang, once there is one. */
    @volatile var job: Int = -1

    def progress(iteration: Int, delta: Long, total: Long): Unit = synchronized {
      metrics("iterations").set(iteration)
      metrics("delta").set(delta)
      metrics("tuples").set(total)
      if (System.nanoTime() - lastPost > PostNanos) post()
    }

    /** The status store adds up whatever the driver posts, so each post says what has been added since the one before. */
    def post(): Unit = synchronized {
      lastPost = System.nanoTime()
      val added = metrics.values.map(m => m.id -> (m.value - posted(m.id))).filter(_._2 != 0).toSeq
      if (executionId != null && added.nonEmpty) {
        metrics.values.foreach(m => posted(m.id) = m.value)
        sc.listenerBus.post(SparkListenerDriverAccumUpdates(executionId.toLong, added))
      }
      if (job >= 0) {
        val (iteration, delta) = (metrics("iterations").value, metrics("delta").value)
        val text = f"paralagg ${spec.program.name}: iteration $iteration, last delta $delta%,d rows"
        sc.listenerBus.post(FixpointProgress(job, text))
      }
    }

    def arrived(attempt: Int, count: Int): Unit = synchronized {
      this.attempt = attempt
      joined = count
      notifyAll()
    }

    def end(): Unit = synchronized {
      ended = true
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
      s"${spec.program.name}: waiting for $tasks slots at the same moment; ${if (this.attempt < attempt) 0 else joined} tasks " +
        s"have one, ${(System.nanoTime() - started) / 1000000000L} s after the query began. A gang starts when all of its " +
        "tasks can run.")
  }

  private val PostNanos = 100L * 1000 * 1000
  private val ids = new AtomicLong(0)
  private val runs = new ConcurrentHashMap[Long, Run]()
  private val reports = Collections.synchronizedMap(new java.util.WeakHashMap[FixpointSpec, String]())
  private val reasons = Collections.synchronizedMap(new java.util.WeakHashMap[FixpointSpec, String]())

  def begin(
      spec: FixpointSpec, tasks: Int, sc: SparkContext, executionId: String, metrics: Map[String, SQLMetric]): Run = {
    val run = new Run(ids.incrementAndGet(), spec, tasks, sc, executionId, metrics)
    runs.put(run.id, run)
    run
  }

  def joined(run: Long, attempt: Int, count: Int): Unit = Option(runs.get(run)).foreach(_.arrived(attempt, count))

  def progress(run: Long, iteration: Int, delta: Long, total: Long): Unit =
    Option(runs.get(run)).foreach(_.progress(iteration, delta, total))

  def reported(run: Long, json: String): Unit = Option(runs.get(run)).foreach { r =>
    r.post()
    reports.put(r.spec, json)
  }

  def end(run: Long): Unit = Option(runs.remove(run)).foreach(_.end())

  /** Ranks should have computed this, and Spark does. */
  def fellBack(spec: FixpointSpec, why: String): Unit = reasons.put(spec, s"the ranks failed: $why")

  /** With the `reason`, where that is another than the one the query was planned for. */
  def report(spec: FixpointSpec): Option[String] = Option(reports.get(spec)).map { json =>
    Option(reasons.get(spec)).fold(json)(why => compact(parse(json).merge(JObject("reason" -> JString(why)))))
  }

  def liveCount: Int = runs.size
}
