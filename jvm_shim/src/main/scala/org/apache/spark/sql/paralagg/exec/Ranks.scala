package org.apache.spark.sql.paralagg.exec

import java.io.{BufferedReader, File, InputStreamReader, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.util.concurrent.TimeUnit

import scala.util.Try

import org.json4s._
import org.json4s.jackson.JsonMethods

/**
 * The supervisor's process (`python -m mpi_backend.launch`), which starts the ranks, watches and ends them. It reads our end
 * of its stdin: should this JVM die, it ends the ranks by itself.
 *
 * `ended` is called once, when no rank runs any more, with the error if there was one.
 */
private[exec] final class Ranks(
    name: String,
    command: Seq[String],
    env: Map[String, String],
    log: File,
    progress: (Int, Long, Long) => Unit,
    ended: Option[JValue] => Unit) {
  import Ranks._

  private val process: Process = {
    val builder = new ProcessBuilder(command: _*).redirectError(log)
    env.foreach { case (key, value) => builder.environment().put(key, value) }
    builder.start()
  }
  @volatile private var isOver = false

  private val reader = new Thread(() => read(), name)
  reader.setDaemon(true)
  reader.start()

  def hasEnded: Boolean = isOver

  /** Returns at once; `ended` tells when it is done. */
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
              progress(number(event \ "iteration").toInt, number(event \ "delta"), number(event \ "total"))
            case JString("end") => end = Some(event)
            case _ =>
          }
        }
    } catch { case _: IOException => } // the pipe is closed with the process
    if (!process.waitFor(EndSeconds, TimeUnit.SECONDS)) process.destroyForcibly().waitFor()
    isOver = true
    ended(end match {
      case Some(event) if event \ "ok" == JBool(true) => None
      case Some(event) => Some(event \ "error")
      case None => Some(JObject("message" -> JString(s"the supervisor of the ranks ended with exit code ${process.exitValue()}"),
          "traceback" -> JString(tail)))
    })
  }

  private def tail: String = Try(Files.readString(log.toPath, UTF_8)).getOrElse("").takeRight(TailChars)
}

private object Ranks {
  private val EndSeconds = 20L
  private val TailChars = 4000

  private def number(value: JValue): Long = value match {
    case JInt(n) => n.toLong
    case _ => 0L
  }
}
