package org.apache.spark.sql.paralagg.exec

import java.io.{File, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import org.json4s._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.{MapOutputTrackerMaster, SparkContext, SparkEnv}
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcCallContext
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.paralagg.plan.{FixpointSpec, OffloadSpec}
import org.apache.spark.util.{ShutdownHookManager, Utils}

/**
 * What the driver knows of one offloaded fixpoint. Ranks run once for a result that Spark keeps; where it has lost that, or
 * was cancelled, it asks again, and everything begins anew in another folder.
 */
private[exec] final class OffloadRun(
    val sc: SparkContext,
    val spec: FixpointSpec,
    metrics: Map[String, SQLMetric],
    partitions: Int,
    ansi: Boolean)
    extends Logging {
  import OffloadRun._

  val id: Long = ids.incrementAndGet()
  val offload: OffloadSpec = spec.offload.get

  /** The RDDs of its two stages, the shuffle between them, and how many files the first one writes; set once. */
  var rdds: Set[Int] = Set.empty
  var shuffle: Int = -1
  var files: Int = -1

  @volatile var job: Int = -1

  private var attempts = List.empty[Attempt] // newest first
  private val released = mutable.Set.empty[Int]

  /** One folder, and what happens in it. `stages` still need it. */
  private final class Attempt(val folder: File) {
    val began: Long = System.nanoTime()
    val stages = mutable.Set.empty[Int]
    val written = mutable.Set.empty[Int]
    val waiting = mutable.Buffer.empty[RpcCallContext]
    var ranks: Ranks = _
    var answer: Any = _
    var failedFor = Set.empty[Int]
    var isToDelete = false
  }

  /** A task is about to write; the answer is the folder. */
  def begin(stage: Int, input: Int, context: RpcCallContext): Unit = synchronized {
    if (released(stage)) context.reply(Gone)
    else {
      try {
        val attempt = attempts.find(_.stages(stage)).getOrElse(create(stage))
        Files.createDirectories(new File(attempt.folder, s"in/$input").toPath)
        context.reply(("ok", attempt.folder.getPath))
      } catch {
        case e: IOException =>
          val where = offload.staging.getOrElse(Utils.getLocalDir(sc.conf))
          context.reply(("failed", "PARALAGG_MPI_STAGING", s"the driver cannot write to $where: ${e.getMessage}.",
              "set spark.paralagg.mpi.stagingDir to a directory that driver, executors and ranks can write to."))
      }
    }
  }

  def wrote(stage: Int, part: Int, context: RpcCallContext): Unit = synchronized {
    attempts.find(_.stages(stage)).foreach(_.written += part)
    context.reply(("ok", ""))
  }

  /** A task needs the result: the answer comes when there is one. */
  def await(stage: Int, execution: Any, context: RpcCallContext): Unit = synchronized {
    attempts.headOption.filterNot(_ => released(stage)) match {
      case Some(attempt) if attempt.written.size == files =>
        attempt.stages += stage
        // Who comes back after a failure wants another try; who fails together is told the same.
        if (attempt.answer != null && attempt.answer != ok(attempt) && !attempt.failedFor(stage)) {
          attempt.answer = null
          attempt.ranks = null
        }
        if (attempt.ranks == null && attempt.answer == null) {
          try start(attempt, Option(execution).map(_.toString).orNull)
          catch {
            case e: IOException =>
              attempt.answer = ("failed", "PARALAGG_MPI_NO_LAUNCHER", s"the ranks' supervisor cannot start: ${e.getMessage}.", "")
          }
        }
        if (attempt.answer == null) attempt.waiting += context
        else {
          if (attempt.answer != ok(attempt)) attempt.failedFor += stage
          context.reply(attempt.answer)
        }
      case _ =>
        forgetInputs()
        context.reply(Gone)
    }
  }

  /** Jobs have ended to which these stages belonged. */
  def release(stages: Set[Int]): Unit = synchronized {
    released ++= stages
    attempts.foreach(_.stages --= stages)
    attempts.filter(_.stages.isEmpty).foreach(a => if (a.ranks != null) a.ranks.stop())
  }

  /** No task of a released stage runs any more. */
  def clear(): Unit = synchronized {
    attempts.filter(_.stages.isEmpty).foreach { a =>
      a.isToDelete = true
      if (a.ranks == null || a.ranks.hasEnded) delete(a)
    }
  }

  def close(): Unit = {
    release(synchronized(attempts.flatMap(_.stages).toSet))
    clear()
  }

  def isLive: Boolean = synchronized(attempts.nonEmpty)

  private def create(stage: Int): Attempt = {
    val parent = offload.staging.getOrElse(Utils.getLocalDir(sc.conf))
    val folder = Utils.createDirectory(parent, s"paralagg-${sc.applicationId}")
    ShutdownHookManager.registerShutdownDeleteDir(folder)
    Seq("in", "out", "writing").foreach(name => Files.createDirectory(new File(folder, name).toPath))
    Files.createFile(new File(folder, Marker).toPath)
    val attempt = new Attempt(folder)
    attempt.stages += stage
    attempts ::= attempt
    attempt
  }

  private def start(attempt: Attempt, execution: String): Unit = {
    val run = RunRegistry.begin(spec, offload.ranks, sc, execution, metrics)
    run.job = job
    val exported = System.nanoTime()
    val out = new File(attempt.folder, "out")
    Utils.deleteRecursively(out)
    Files.createDirectory(out.toPath)
    val plan = write(attempt.folder, "plan.json", offload.plan)
    val settings = offload.settings ~ ("plan" -> plan) ~ ("in" -> new File(attempt.folder, "in").getPath) ~
      ("out" -> out.getPath) ~ ("format" -> "arrow") ~ ("partitions" -> partitions) ~
      ("outputs" -> List(spec.relation)) ~ ("ansi" -> ansi) ~ ("scratch" -> attempt.folder.getPath)
    val command = offload.supervisor :+ write(attempt.folder, "spec.json", settings)
    def progress(iteration: Int, delta: Long, total: Long): Unit =
      RunRegistry.progress(run.id, iteration, delta, total)
    def ended(answer: Option[JValue]): Unit = {
      val told = answer match {
        case None =>
          RunRegistry.reported(run.id, report(out, offload.backend, (exported - attempt.began) / 1e9))
          ok(attempt)
        case Some(error) => failure(error)
      }
      RunRegistry.end(run.id)
      finish(attempt, told)
    }
    attempt.ranks = new Ranks(s"paralagg-ranks-$id", command, offload.env, new File(attempt.folder, "supervisor.log"),
      progress, ended)
  }

  private def finish(attempt: Attempt, answer: Any): Unit = synchronized {
    attempt.answer = answer
    if (answer != ok(attempt)) attempt.failedFor ++= attempt.stages
    attempt.waiting.foreach(_.reply(answer))
    attempt.waiting.clear()
    if (attempt.isToDelete) delete(attempt)
  }

  private def delete(attempt: Attempt): Unit = {
    if (attempts.headOption.contains(attempt)) forgetInputs()
    attempts = attempts.filterNot(_ eq attempt)
    attempt.waiting.foreach(_.reply(Gone))
    try {
      Utils.deleteRecursively(attempt.folder)
      ShutdownHookManager.removeShutdownDeleteDir(attempt.folder)
    } catch { case e: IOException => logWarning(s"cannot delete ${attempt.folder}", e) }
  }

  /** Spark must not take inputs for written whose files are gone. */
  private def forgetInputs(): Unit = Option(SparkEnv.get).map(_.mapOutputTracker).foreach {
    case master: MapOutputTrackerMaster if master.containsShuffle(shuffle) =>
      master.unregisterAllMapAndMergeOutput(shuffle)
    case _ =>
  }

  private def ok(attempt: Attempt): Any = ("ok", attempt.folder.getPath)
}

private[exec] object OffloadRun {
  val Marker = "here"
  val Gone: Any = ("gone", "")
  private val ids = new AtomicLong(0)

  private def write(folder: File, name: String, json: JValue): String =
    Files.writeString(new File(folder, name).toPath, JsonMethods.compact(json)).toString

  /** An error of the ranks or their supervisor, as tasks are told. */
  private def failure(error: JValue): Any = {
    def field(name: String): Option[String] = error \ name match {
      case JString(text) if text.nonEmpty => Some(text)
      case JInt(number) => Some(number.toString)
      case _ => None
    }
    val code = field("code").getOrElse("PARALAGG_MPI_RANK_FAILED")
    // Which rank met an error in the data is chance.
    val who = field("rank").filter(_ => code.startsWith("PARALAGG_MPI_"))
      .map(r => s"rank $r" + field("host").fold("")(h => s" on $h")).toSeq
    val where = (field("place").map("in " + _).toSeq ++ who).mkString(" (", ", ", ")")
    val text =
      field("message").getOrElse("the ranks ended without a word").stripSuffix(".") + (if (where == " ()") "" else where)
    ("failed", code, s"$text." + field("traceback").fold("")("\n" + _ + "\n"), field("hint").getOrElse(""))
  }

  /** The ranks' report under the name that the user knows, and with what it took to write the inputs. */
  private def report(out: File, backend: String, exported: Double): String = {
    val told = JsonMethods.parse(Files.readString(new File(out, "report.json").toPath, UTF_8))
    JsonMethods.compact(told.merge(("backend" -> backend) ~ ("seconds" -> ("export" -> exported))))
  }
}
