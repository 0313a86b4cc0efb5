package org.apache.spark.sql.paralagg.offload

import java.io.{File, IOException}
import java.util.UUID
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import org.json4s._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.{MapOutputTrackerMaster, SparkContext, SparkEnv}
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcCallContext
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.driver.RunRegistry
import org.apache.spark.sql.paralagg.plan.{FixpointSpec, OffloadSpec}
import org.apache.spark.util.Utils

/**
 * The driver's state of one offloaded fixpoint. Ranks run once, and Spark keeps the result. If Spark loses it, or the
 * query is cancelled, the next request starts a new attempt in another folder.
 *
 * Tasks send requests; the reply is ("ok", text), ("failed", code, text, hint), or `Gone`, and may come much later.
 */
private[paralagg] final class OffloadRun(
    val sc: SparkContext,
    val spec: FixpointSpec,
    metrics: Map[String, SQLMetric],
    partitions: Int,
    ansi: Boolean)
    extends Logging {
  import OffloadRun._

  val id: Long = ids.incrementAndGet()
  val offload: OffloadSpec = spec.offload.get

  /** Its stages; set once, before any of them runs. */
  var stages: OffloadStages = _

  @volatile var job: Int = -1

  private var attempts = List.empty[Attempt] // newest first
  private val released = mutable.Set.empty[Int]

  /** One attempt, with its folder. */
  private final class Attempt(val place: StagingFolder) {
    val folder: File = place.folder
    val began: Long = System.nanoTime()

    /** The stages that still need it. */
    val stages = mutable.Set.empty[Int]
    val written = mutable.Set.empty[Int]
    val waiting = mutable.Buffer.empty[RpcCallContext]
    val offers = new Offers
    var starts = 0
    var ranks: Ranks = _
    var answer: Any = _

    /** Stages that have received the failure. */
    val failedFor = mutable.Set.empty[Int]
    var isToDelete = false

    def isRunning: Boolean = ranks != null && answer == null
    def hasFailed: Boolean = answer != null && !OffloadRun.isOk(answer)
  }

  /** Replies with the folder to a task that is about to write. */
  def begin(stage: Int, input: Int, context: RpcCallContext): Unit = synchronized {
    if (released(stage)) context.reply(Gone)
    else {
      try {
        val attempt = attempts.find(_.stages(stage)).getOrElse(create(stage))
        PrivateFiles.createFolders(new File(attempt.folder, s"in/$input"))
        context.reply(("ok", attempt.folder.getPath))
      } catch {
        case e: IOException =>
          val where = offload.staging.getOrElse(Utils.getLocalDir(sc.conf))
          context.reply(("failed", ErrorCodes.MpiStaging, s"the driver cannot write to $where: ${e.getMessage}.",
              "set spark.paralagg.mpi.stagingDir to a directory that driver, executors and ranks can write to."))
      }
    }
  }

  def wrote(stage: Int, part: Int, context: RpcCallContext): Unit = synchronized {
    attempts.find(_.stages(stage)).foreach(_.written += part)
    context.reply(("ok", ""))
  }

  /** Takes a task's slot for ranks; replies with the proxy's command to one task of each executor, else "". */
  def join(stage: Int, number: Int, part: Int, executor: String, execution: Any, context: RpcCallContext): Unit =
    synchronized {
      withInputs(stage, context) { attempt =>
        if (attempt.offers.startsNewGang(stage, number)) {
          if (attempt.ranks != null) attempt.ranks.stop()
          attempt.ranks = null
          attempt.answer = null
        }
        attempt.offers.add(part, executor, context)
        if (attempt.offers.count == offload.ranks) start(attempt, execution)
      }
    }

  /** Replies after the ranks have ended to a task that offered its slot. `problem` is that of its proxy, if any. */
  def over(stage: Int, code: String, problem: String, context: RpcCallContext): Unit = synchronized {
    attempts.find(_.stages(stage)) match {
      case Some(attempt) if attempt.isRunning =>
        attempt.offers.waiting += context
        if (problem.nonEmpty) {
          attempt.ranks.stop()
          val hint = if (code == ErrorCodes.MpiNoLauncher) InstallHint else ""
          finish(attempt, attempt.ranks, ("failed", code, s"$problem.", hint))
        }
      case _ => context.reply(("ok", ""))
    }
  }

  /** Replies with the folder of the result; starts the ranks if necessary. */
  def await(stage: Int, execution: Any, context: RpcCallContext): Unit = synchronized {
    withInputs(stage, context) { attempt =>
      // A stage that received the failure before is a retry; the others of the attempt get the same failure.
      if (!offload.isOnExecutors && attempt.hasFailed && !attempt.failedFor(stage)) {
        attempt.answer = null
        attempt.ranks = null
      }
      if (attempt.ranks == null && attempt.answer == null && !offload.isOnExecutors) start(attempt, execution)
      if (attempt.isRunning) attempt.waiting += context
      else if (attempt.answer == null) replyGone(context)
      else {
        if (attempt.hasFailed) {
          attempt.failedFor += stage
          stages.gangShuffle.foreach(unregister) // the next job that needs it starts ranks again
        }
        context.reply(attempt.answer)
      }
    }
  }

  /** Releases the stages of ended jobs, and stops ranks that no other stage needs. */
  def release(stages: Set[Int]): Unit = synchronized {
    released ++= stages
    attempts.foreach(_.stages --= stages)
    attempts.filter(a => a.stages.isEmpty && a.isRunning).foreach(_.ranks.stop())
  }

  /** Deletes the folders of released stages, after their last tasks have ended. */
  def clear(): Unit = synchronized {
    attempts.filter(_.stages.isEmpty).foreach { a =>
      a.isToDelete = true
      if (!a.isRunning) delete(a)
    }
  }

  def close(): Unit = {
    release(synchronized(attempts.flatMap(_.stages).toSet))
    clear()
  }

  def isLive: Boolean = synchronized(attempts.nonEmpty)

  /** Calls `use` if all inputs are written; otherwise makes Spark run their tasks again. */
  private def withInputs(stage: Int, context: RpcCallContext)(use: Attempt => Unit): Unit =
    attempts.headOption.filter(a => !released(stage) && a.written.size == stages.files) match {
      case Some(attempt) =>
        attempt.stages += stage
        use(attempt)
      case None => replyGone(context)
    }

  private def replyGone(context: RpcCallContext): Unit = {
    stages.shuffles.foreach(unregister)
    context.reply(Gone)
  }

  private def create(stage: Int): Attempt = {
    val parent = PrivateFiles.createFolders(new File(offload.staging.getOrElse(Utils.getLocalDir(sc.conf))))
    val attempt = new Attempt(StagingFolder.create(parent.toFile, sc.applicationId))
    Seq("in", "writing").foreach(name => PrivateFiles.createFolder(new File(attempt.folder, name)))
    attempt.stages += stage
    attempts ::= attempt
    attempt
  }

  private def start(attempt: Attempt, execution: Any): Unit = {
    val run = RunRegistry.begin(spec, offload.ranks, sc, Option(execution).map(_.toString).orNull, metrics)
    run.job = job
    val exported = (System.nanoTime() - attempt.began) / 1e9
    attempt.starts += 1
    val out = new File(attempt.folder, s"out${attempt.starts}") // ranks of an earlier start may still write
    def ended(ranks: Ranks, error: Option[JValue]): Unit = {
      val answer = error.map(RanksAnswer.failure).getOrElse {
        try {
          RunRegistry.reported(run.id, RanksAnswer.report(out, offload.backend, exported))
          ("ok", out.getPath)
        } catch { case e: IOException => RanksAnswer.failure(JObject("message" -> JString(e.toString))) }
      }
      RunRegistry.end(run.id)
      finish(attempt, ranks, answer)
    }
    try {
      PrivateFiles.createFolder(out)
      val log = PrivateFiles.write(new File(attempt.folder, "supervisor.log"), "").toFile
      val address = sc.conf.get("spark.driver.host", Utils.localHostName())
      val settings = offload.settings ~ ("plan" -> write(attempt, "plan.json", offload.plan)) ~
        ("in" -> new File(attempt.folder, "in").getPath) ~ ("out" -> out.getPath) ~ ("format" -> "arrow") ~
        ("partitions" -> partitions) ~ ("outputs" -> List(spec.relation)) ~ ("ansi" -> ansi) ~
        ("scratch" -> attempt.folder.getPath) ~ ("shared" -> offload.isShared) ~ ("hosts" -> attempt.offers.hosts) ~
        ("address" -> address) ~ ("bind" -> sc.conf.get("spark.driver.bindAddress", address))
      attempt.ranks = new Ranks(
        s"paralagg-ranks-$id",
        offload.supervisor :+ write(attempt, s"spec${attempt.starts}.json", settings),
        offload.env,
        log,
        RunRegistry.progress(run.id, _),
        command => synchronized(attempt.offers.assign(command)),
        ended)
    } catch {
      case e: ParalaggException =>
        RunRegistry.end(run.id)
        finish(attempt, null, ("failed", e.getCondition, e.text, e.hint))
      case e: IOException =>
        RunRegistry.end(run.id)
        finish(attempt, null,
          ("failed", ErrorCodes.MpiNoLauncher, s"the ranks' supervisor cannot start: ${e.getMessage}.", InstallHint))
    }
  }

  /** Replies to all waiting tasks, if these are not the ranks of an earlier start that end late. */
  private def finish(attempt: Attempt, ranks: Ranks, answer: Any): Unit = synchronized {
    if (attempt.ranks eq ranks) {
      attempt.answer = if (attempt.answer == null) answer else attempt.answer
      if (attempt.hasFailed) attempt.failedFor ++= attempt.stages
      attempt.offers.end()
      attempt.waiting.foreach(_.reply(attempt.answer))
      attempt.waiting.clear()
      if (attempt.isToDelete) delete(attempt)
    }
  }

  private def delete(attempt: Attempt): Unit = {
    if (attempts.headOption.contains(attempt)) stages.shuffles.foreach(unregister)
    attempts = attempts.filterNot(_ eq attempt)
    try attempt.place.delete()
    catch { case e: IOException => logWarning(s"cannot delete ${attempt.folder}", e) }
  }

  private def write(attempt: Attempt, name: String, json: JValue): String = {
    val file = new File(attempt.folder, name)
    ArrowFiles.onDisk(file)(PrivateFiles.write(file, JsonMethods.compact(json)).toString)
  }
}

private[paralagg] object OffloadRun {
  val Gone: Any = ("gone", "")
  private val InstallHint = "pip install pyspark-paralagg[mpi] on every machine that ranks run on."
  private val ids = new AtomicLong(0)

  private def isOk(answer: Any): Boolean = answer match {
    case ("ok", _) => true
    case _ => false
  }

  /** Unregisters the output of a shuffle, so that Spark does not treat deleted files as written. */
  private def unregister(shuffle: Int): Unit = Option(SparkEnv.get).map(_.mapOutputTracker).foreach {
    case master: MapOutputTrackerMaster if master.containsShuffle(shuffle) =>
      master.unregisterAllMapAndMergeOutput(shuffle)
    case _ =>
  }
}

/** The gang tasks that offer their slots to ranks (launcher `spark`). Each executor runs one proxy for its ranks. */
private[paralagg] final class Offers {
  private var gang = (-1, -1)
  private val offers = mutable.SortedMap.empty[Int, (String, RpcCallContext)]
  private val answered = mutable.Set.empty[Int]
  val waiting = mutable.Buffer.empty[RpcCallContext]

  def count: Int = offers.size

  /** Tests for the first task of a new attempt of the stage, and then drops the offers of the previous one. */
  def startsNewGang(stage: Int, number: Int): Boolean = {
    val isNew = gang != ((stage, number))
    if (isNew) {
      end()
      offers.clear()
      answered.clear()
      gang = (stage, number)
    }
    isNew
  }

  def add(part: Int, executor: String, context: RpcCallContext): Unit = offers(part) = (executor, context)

  /** Returns the executors with the number of their tasks, in the order of their first tasks. */
  def hosts: List[String] =
    executors.map(e => s"executor-$e:${offers.values.count(_._1 == e)}")

  /** Sends a proxy's command to the first task of its executor. */
  def assign(command: Seq[String]): Unit = {
    val number = command(command.indexOf("--proxy-id") + 1).toInt
    val leader = offers.collectFirst { case (part, (executor, _)) if executor == executors(number) => part }
    leader.foreach(answer(_, JsonMethods.compact(JArray(command.map(JString(_)).toList))))
    if (number == executors.length - 1) offers.keys.foreach(answer(_, ""))
  }

  /** Releases all tasks. */
  def end(): Unit = {
    offers.keys.foreach(answer(_, ""))
    waiting.foreach(_.reply(("ok", "")))
    waiting.clear()
  }

  private def executors: List[String] = offers.values.map(_._1).toList.distinct

  private def answer(part: Int, command: String): Unit = if (answered.add(part)) offers(part)._2.reply(("ok", command))
}
