package org.apache.spark.sql.paralagg.offload

import java.io.{BufferedReader, File, InputStreamReader, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.util.concurrent.TimeUnit

import scala.util.Try

import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.paralagg.ErrorCodes
import org.apache.spark.sql.paralagg.gang.RunCounts

/**
 * The supervisor's process (`python -m mpi_backend.launch`), which starts, watches and ends the ranks. If this JVM
 * dies, the supervisor's stdin closes, and it ends the ranks.
 *
 * `proxy` gets the commands that executors must run (launcher `spark`). `ended` is called once, after the last rank,
 * with the error if there was one.
 */
private[paralagg] final class Ranks(
    name: String,
    command: Seq[String],
    env: Map[String, String],
    log: File,
    progress: RunCounts => Unit,
    proxy: Seq[String] => Unit,
    ended: (Ranks, Option[JValue]) => Unit) {
  import Ranks._

  private val began = System.currentTimeMillis() / 1000 - 1 // file times are not exact
  private val process: Process = {
    val builder = new ProcessBuilder(command: _*).redirectError(log)
    env.foreach { case (key, value) => builder.environment().put(key, value) }
    builder.environment().put(RunVariable, command.last)
    builder.start()
  }
  private val halt = new ProcessStop(process)
  start(name, () => read())
  // A supervisor that is stopped for too long is killed: it reports nothing, and its ranks would continue.
  start(s"$name-watch", () => halt.await(WatchMillis)(()))

  private def start(name: String, body: () => Unit): Unit = {
    val thread = new Thread(() => body(), name)
    thread.setDaemon(true)
    thread.start()
  }

  /** Starts the end of the ranks and returns; `ended` is called after it. */
  def stop(): Unit = {
    try process.getOutputStream.close()
    catch { case _: IOException => } // it has ended already
    process.destroy()
  }

  private def read(): Unit = {
    var end: Option[JValue] = None
    val lines = new BufferedReader(new InputStreamReader(process.getInputStream, UTF_8))
    try {
      Iterator.continually(lines.readLine()).takeWhile(_ != null).flatMap(l => Try(JsonMethods.parse(l)).toOption)
        .foreach { event =>
          event \ "event" match {
            case JString("progress") =>
              val Seq(iteration, delta, total, changed, bytes, heaviest) =
                Seq("iteration", "delta", "total", "changed", "bytes", "heaviest")
                  .map(n => (event \ n).extractOrElse(0L))
              progress(RunCounts(iteration.toInt, delta, total, changed, bytes, heaviest))
            case JString("proxy") => proxy((event \ "argv").children.collect { case JString(word) => word })
            case JString("end") => end = Some(event)
            case _ =>
          }
        }
    } catch { case _: IOException => } // the pipe is closed with the process
    if (!process.waitFor(EndSeconds, TimeUnit.SECONDS)) process.destroyForcibly().waitFor()
    if (process.exitValue() > Signals) clear()
    ended(this,
      end match {
        case Some(event) if event \ "ok" == JBool(true) => None
        case Some(event) => Some(event \ "error")
        case None =>
          val code = process.exitValue()
          val ending =
            if (halt.hasKilled) s"has been stopped for ${ProcessStop.Seconds} s"
            else if (code > Signals) s"was killed by signal ${code - Signals}"
            else s"ended with exit code $code"
          Some(JObject("message" -> JString(s"the supervisor of the ranks $ending"), "traceback" -> JString(tail)))
      })
  }

  /** Ends the processes that a killed supervisor has left, before the files of the run are deleted. */
  private def clear(): Unit = Try {
    val builder =
      new ProcessBuilder(command.dropRight(2) ++ Seq("mpi_backend.launch.clear", command.last, s"$began"): _*)
    env.foreach { case (key, value) => builder.environment().put(key, value) }
    builder.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start()
      .waitFor(EndSeconds, TimeUnit.SECONDS)
  }

  private def tail: String = Try(Files.readString(log.toPath, UTF_8)).getOrElse("").takeRight(TailChars)
}

private object Ranks {
  private implicit val formats: Formats = DefaultFormats
  private val EndSeconds = 20L

  /** `RUN_VARIABLE` of `mpi_backend/launch/process_tree.py`. */
  private val RunVariable = "PARALAGG_MPI_RUN"
  private val WatchMillis = 500L
  private val Signals = 128 // Java adds a signal's number to it
  private val TailChars = 4000
}

/** The replies to tasks after the ranks have ended. */
private[paralagg] object RanksAnswer {

  /** Returns the ranks' report, with the user's name of the backend and the seconds to write the inputs. */
  def report(out: File, backend: String, exported: Double): String = {
    val report = JsonMethods.parse(Files.readString(new File(out, "report.json").toPath, UTF_8))
    val more = JObject("backend" -> JString(backend), "seconds" -> JObject("export" -> JDouble(exported)))
    JsonMethods.compact(report.merge(more))
  }

  /** Returns the reply for an error of a rank or of the supervisor. */
  def failure(error: JValue): Any = {
    def field(name: String): Option[String] = error \ name match {
      case JString(text) if text.nonEmpty => Some(text)
      case JInt(number) => Some(number.toString)
      case _ => None
    }
    val code = field("code").getOrElse(ErrorCodes.MpiRankFailed)
    // The rank that finds an error in the data is arbitrary.
    val rank = field("rank").filter(_ => ErrorCodes.OfRanks(code))
      .map(r => s"rank $r" + field("host").fold("")(h => s" on $h")).toSeq
    val places = field("place").map("in " + _).toSeq ++ rank
    val message = field("message").getOrElse("the ranks ended without a message").stripSuffix(".")
    val text = s"$message${if (places.isEmpty) "" else places.mkString(" (", ", ", ")")}."
    ("failed", code, text + field("traceback").fold("")("\n" + _ + "\n"), field("hint").getOrElse(""))
  }
}
