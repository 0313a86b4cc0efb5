package org.apache.spark.sql.paralagg.offload

import java.lang.ref.WeakReference
import java.util.concurrent.{ConcurrentHashMap, TimeoutException}

import scala.collection.mutable
import scala.concurrent.Await
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkContext, SparkEnv, TaskContext}
import org.apache.spark.rpc.{RpcCallContext, RpcEnv, RpcTimeout, ThreadSafeRpcEndpoint}
import org.apache.spark.scheduler._
import org.apache.spark.sql.paralagg.ParalaggException
import org.apache.spark.sql.paralagg.driver.JobDescriptions
import org.apache.spark.util.{RpcUtils, ThreadUtils}

/** The driver's endpoint for all offloaded runs of a SparkContext; `OffloadRun` replies to tasks. JDK types only. */
private final class Offloads(override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {
  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
    case ("begin", run: Long, stage: Int, part: Int, input: Int) => handle(run, context)(_.begin(stage, input, context))
    case ("wrote", run: Long, stage: Int, part: Int) => handle(run, context)(_.wrote(stage, part, context))
    case ("join", run: Long, stage: Int, number: Int, part: Int, executor: String, execution) =>
      handle(run, context)(_.join(stage, number, part, executor, execution, context))
    case ("over", run: Long, stage: Int, code: String, problem: String) =>
      handle(run, context)(_.over(stage, code, problem, context))
    case ("await", run: Long, stage: Int, execution) => handle(run, context)(_.await(stage, execution, context))
  }

  private def handle(id: Long, context: RpcCallContext)(answer: OffloadRun => Unit): Unit =
    Offloads.find(id).fold(context.reply(OffloadRun.Gone))(answer)
}

object Offloads {
  private val Name = "paralagg-offloads"
  private val AskTimeout = new RpcTimeout(365.days, "spark.paralagg") // a run may take long; cancellation ends the wait
  private val runs = new ConcurrentHashMap[Long, WeakReference[OffloadRun]]()
  private var current: SparkContext = _

  /** Sends a request of a task to the driver and waits for the reply; None if the requested files are gone. */
  private[paralagg] def ask(message: Any, context: TaskContext): Option[String] = {
    val env = SparkEnv.get
    val reply = RpcUtils.makeDriverRef(Name, env.conf, env.rpcEnv).ask[Any](message, AskTimeout)
    while (!reply.isCompleted) {
      context.killTaskIfInterrupted()
      try Await.ready(reply, 20.millis)
      catch { case _: TimeoutException => }
    }
    ThreadUtils.awaitResult(reply, Duration.Zero) match {
      case ("ok", folder: String) => Some(folder)
      case ("failed", code: String, text: String, hint: String) => throw new ParalaggException(code, text, hint)
      case OffloadRun.Gone => None
    }
  }

  /** Registers a run for as long as Spark can run it (`ResultsRDD` has the strong reference). */
  private[paralagg] def register(run: OffloadRun): Unit = synchronized {
    if (current ne run.sc) {
      current = run.sc
      val rpcEnv = SparkEnv.get.rpcEnv
      rpcEnv.setupEndpoint(Name, new Offloads(rpcEnv))
      current.addSparkListener(new OffloadEnd)
      JobDescriptions.listen(current)
    }
    runs.values.removeIf(_.get == null)
    runs.put(run.id, new WeakReference(run))
  }

  private[paralagg] def find(id: Long): Option[OffloadRun] = Option(runs.get(id)).flatMap(r => Option(r.get))

  private[paralagg] def all: Iterable[OffloadRun] = runs.values.asScala.flatMap(r => Option(r.get))

  /** Returns the number of runs with files or processes. */
  def liveCount: Int = all.count(_.isLive)
}

/**
 * The listener that stops ranks after the jobs that wait for them, and deletes files after the last task of these jobs.
 * A cancelled query returns to its caller before its tasks have stopped.
 */
private final class OffloadEnd extends SparkListener {
  private val jobs = mutable.Map.empty[Int, Seq[(OffloadRun, Set[Int])]]
  private val running = mutable.Map.empty[Int, Int]
  private val ending = mutable.Set.empty[(OffloadRun, Set[Int])]

  override def onJobStart(event: SparkListenerJobStart): Unit = {
    val offloads = Offloads.all.toSeq.flatMap { run =>
      val stages = event.stageInfos.filter(_.rddInfos.exists(r => run.stages.rdds(r.id))).map(_.stageId).toSet
      if (stages.isEmpty) None else Some((run, stages))
    }
    if (offloads.nonEmpty) jobs(event.jobId) = offloads
    offloads.foreach { case (run, stages) =>
      run.job = event.jobId
      stages.foreach(s => running.getOrElseUpdate(s, 0))
    }
  }

  override def onTaskStart(event: SparkListenerTaskStart): Unit = count(event.stageId, 1)

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit = if (count(event.stageId, -1)) clear()

  override def onJobEnd(event: SparkListenerJobEnd): Unit = jobs.remove(event.jobId).foreach { ended =>
    val needed = jobs.values.flatten.flatMap(_._2).toSet
    ended.foreach { case (run, stages) =>
      run.release(stages -- needed)
      ending += ((run, stages -- needed))
    }
    clear()
  }

  override def onApplicationEnd(event: SparkListenerApplicationEnd): Unit = Offloads.all.foreach(_.close())

  private def count(stage: Int, change: Int): Boolean = running.get(stage).exists { n =>
    running(stage) = n + change
    true
  }

  private def clear(): Unit =
    ending.filter { case (_, stages) => stages.forall(running.getOrElse(_, 0) <= 0) }.foreach {
      case end @ (run, stages) =>
        ending -= end
        running --= stages
        run.clear()
    }
}
