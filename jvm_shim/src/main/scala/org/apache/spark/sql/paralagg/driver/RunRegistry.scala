package org.apache.spark.sql.paralagg.driver

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.json4s.{JObject, JString}
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, parse}

import org.apache.spark.SparkContext
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.paralagg.gang.{Coordinator, RunCounts, RunEvents}
import org.apache.spark.sql.paralagg.plan.FixpointSpec

/** The driver's runs: those that go on, and how the last ones ended; what each told is kept with its fixpoint. */
object RunRegistry extends RunEvents {
  private val ids = new AtomicLong(0)
  private val runs = new ConcurrentHashMap[Long, Run]()

  /** Whatever happens to a run has a number: who asks what is new says the last one that they know of. */
  private object News {
    var last = 0L
    val ofLive = mutable.Map.empty[Long, Long]
    val ofEnded = mutable.Queue.empty[(Long, JObject)]

    def next(): Long = {
      last += 1
      last
    }
  }
  private val MostEnded = 256

  private[paralagg] def begin(
      spec: FixpointSpec, tasks: Int, sc: SparkContext, executionId: String, metrics: Map[String, SQLMetric]): Run = {
    val run = new Run(ids.incrementAndGet(), spec, tasks, sc, executionId, metrics)
    runs.put(run.id, run)
    run.begin()
    note(run)
    run
  }

  /** The coordinator of the context's gangs, which reports to this registry. */
  def coordinator(sc: SparkContext): RpcEndpointRef = Coordinator.of(sc, this)

  override def joined(run: Long, attempt: Int, count: Int): Unit =
    Option(runs.get(run)).foreach(_.arrived(attempt, count))

  override def progress(run: Long, counts: RunCounts): Unit = Option(runs.get(run)).foreach { r =>
    r.progress(counts)
    note(r)
  }

  override def reported(run: Long, json: String): Unit = Option(runs.get(run)).foreach { r =>
    r.spec.whole.lastRun.report = json
    r.succeeded(RunSummary.of(parse(json)))
    note(r)
  }

  def end(run: Long): Unit = News.synchronized {
    Option(runs.remove(run)).foreach { r =>
      val last = News.ofLive.remove(run)
      News.ofEnded += ((if (r.end()) News.next() else last.getOrElse(News.last), r.state))
      if (News.ofEnded.size > MostEnded) News.ofEnded.dequeue()
    }
  }

  private def note(run: Run): Unit = News.synchronized(if (runs.containsKey(run.id)) News.ofLive(run.id) = News.next())

  /** What has happened since `after`: the state of each run that something has happened to, in the order of their coming. */
  def since(after: Long): JObject = News.synchronized {
    val ended = News.ofEnded.toSeq.collect { case (at, state) if at > after => state }
    val live = runs.values.asScala.toSeq.filter(r => News.ofLive.get(r.id).exists(_ > after)).sortBy(_.id).map(_.state)
    ("now" -> News.last) ~ ("runs" -> (ended ++ live))
  }

  /** Ranks are to compute this: why they did not an earlier time is over. */
  def beginOffload(spec: FixpointSpec): Unit = spec.whole.lastRun.reason = null

  /** Ranks should have computed this, and Spark does. */
  def fellBack(spec: FixpointSpec, why: String): Unit = spec.whole.lastRun.reason = s"the ranks failed: $why"

  /** With the `reason`, where that is another than the one the query was planned for. */
  def report(spec: FixpointSpec): Option[String] = {
    val last = spec.whole.lastRun
    Option(last.report).map { json =>
      Option(last.reason).fold(json)(why => compact(parse(json).merge(JObject("reason" -> JString(why)))))
    }
  }

  def liveCount: Int = runs.size

  /** Runs so far: equal fixpoints of a query share one (a test holds it). */
  def begun: Long = ids.get
}
