package org.apache.spark.sql.paralagg.driver

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.json4s.{JObject, JString}
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, parse}

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.paralagg.gang.RunCounts
import org.apache.spark.sql.paralagg.plan.FixpointSpec

/** The driver's live runs, and the final states of the last ones. The report of a run is kept with its fixpoint. */
object RunRegistry {
  private val ids = new AtomicLong(0)
  private val runs = new ConcurrentHashMap[Long, Run]()

  /** The numbers of changes to runs: a poll passes the last number that it has seen. */
  private object Changes {
    var last = 0L
    val live = mutable.Map.empty[Long, Long]
    val ended = mutable.Queue.empty[(Long, JObject)]

    def next(): Long = {
      last += 1
      last
    }
  }
  private val MaxEnded = 256

  private[paralagg] def begin(
      spec: FixpointSpec, tasks: Int, sc: SparkContext, executionId: String, metrics: Map[String, SQLMetric]): Run = {
    val run = new Run(ids.incrementAndGet(), spec, tasks, sc, executionId, metrics)
    runs.put(run.id, run)
    run.begin()
    recordChange(run)
    run
  }

  def joined(run: Long, attempt: Int, count: Int): Unit =
    Option(runs.get(run)).foreach(_.arrived(attempt, count))

  def progress(run: Long, counts: RunCounts): Unit = Option(runs.get(run)).foreach { r =>
    r.progress(counts)
    recordChange(r)
  }

  def reported(run: Long, json: String): Unit = Option(runs.get(run)).foreach { r =>
    r.spec.whole.lastRun.report = json
    r.succeeded(parse(json))
    recordChange(r)
  }

  def end(run: Long): Unit = Changes.synchronized {
    Option(runs.remove(run)).foreach { r =>
      val last = Changes.live.remove(run)
      Changes.ended += ((if (r.end()) Changes.next() else last.getOrElse(Changes.last), r.state))
      if (Changes.ended.size > MaxEnded) Changes.ended.dequeue()
    }
  }

  private def recordChange(run: Run): Unit = Changes.synchronized {
    if (runs.containsKey(run.id)) Changes.live(run.id) = Changes.next()
  }

  /** Returns the state of each run that has changed since the number `after`, ended runs first. */
  def since(after: Long): JObject = Changes.synchronized {
    val ended = Changes.ended.toSeq.collect { case (at, state) if at > after => state }
    val live = runs.values.asScala.toSeq.filter(r => Changes.live.get(r.id).exists(_ > after)).sortBy(_.id).map(_.state)
    ("now" -> Changes.last) ~ ("runs" -> (ended ++ live))
  }

  /** Starts an offload; clears the reason of an earlier one that failed. */
  def beginOffload(spec: FixpointSpec): Unit = spec.whole.lastRun.reason = null

  /** Records why Spark computes a fixpoint instead of ranks. */
  def fellBack(spec: FixpointSpec, cause: String): Unit = spec.whole.lastRun.reason = s"the ranks failed: $cause"

  /** Returns the report of the last run, with the `reason` of a fallback if there was one. */
  def report(spec: FixpointSpec): Option[String] = {
    val last = spec.whole.lastRun
    Option(last.report).map { json =>
      Option(last.reason).fold(json)(reason => compact(parse(json).merge(JObject("reason" -> JString(reason)))))
    }
  }

  def isLive(run: Long): Boolean = runs.containsKey(run)

  def liveCount: Int = runs.size

  /** Returns the number of runs so far: equal fixpoints of a query share one (a test checks it). */
  def begun: Long = ids.get
}
