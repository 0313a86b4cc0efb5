package org.apache.spark.sql.paralagg.sql

import java.io.{BufferedReader, File, InputStreamReader, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Collections, LinkedHashMap => JLinkedHashMap, Map => JMap}
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.paralagg.ParalaggException

/**
 * A Python that compiles: started at the first question and kept, one line of JSON a question and one an answer. It ends when
 * its standard input does, so it never outlives this JVM. One that has died is started anew by the next question.
 *
 * Its answers are kept by the text of the question, in which nothing changes from one analysis of a query to the next.
 */
class CompilerProcess(python: String, path: String) {
  import CompilerProcess._

  private class Running(val process: Process) {
    private val lines = new LinkedBlockingQueue[Option[String]]()
    private val tail = mutable.Queue.empty[String]
    private val input = process.outputWriter(UTF_8)

    daemon("answers", process.getInputStream)(line => lines.put(Some(line)), () => lines.put(None))
    private val errors = daemon("errors", process.getErrorStream)(keep, () => ())

    private def keep(line: String): Unit = tail.synchronized {
      tail.enqueue(line)
      if (tail.length > TailLines) tail.dequeue()
    }

    def ask(line: String): String = {
      try {
        input.write(line)
        input.write('\n')
        input.flush()
      } catch { case e: IOException => fail("has ended", e) }
      val answer =
        try lines.poll(TimeoutSeconds, TimeUnit.SECONDS)
        catch {
          case e: InterruptedException => // a cancelled query: the next question must not get this one's answer
            process.destroyForcibly()
            throw e
        }
      if (answer == null) fail(s"has not answered within $TimeoutSeconds s", null)
      answer.getOrElse(fail("has ended", null))
    }

    private def fail(what: String, cause: Throwable): Nothing = {
      // The last words are the interesting ones, and they are lost with the streams of a process that is destroyed.
      if (!process.waitFor(1, TimeUnit.SECONDS)) process.destroyForcibly()
      errors.join(1000)
      val said = tail.synchronized(tail.mkString("\n"))
      throw problem(s"$what${if (said.isEmpty) "" else s"; it said:\n$said"}", cause)
    }
  }

  private var running: Option[Running] = None

  private val answers: JMap[String, Either[Refusal, JValue]] =
    Collections.synchronizedMap(new JLinkedHashMap[String, Either[Refusal, JValue]](16, 0.75f, true) {
      override def removeEldestEntry(eldest: JMap.Entry[String, Either[Refusal, JValue]]): Boolean = size > Kept
    })

  /** The answer to `question`; a Refusal where the program is at fault. */
  def ask(question: JObject): Either[Refusal, JValue] = {
    val line = JsonMethods.compact(question)
    Option(answers.get(line)).getOrElse {
      val answer = Refusal.or(JsonMethods.parse(answered(line)))
      // Another version may be replaced while this JVM runs: the next question asks a new process.
      if (answer.left.exists(_.code == "PARALAGG_SHIM_MISMATCH")) stop() else answers.put(line, answer)
      answer
    }
  }

  private def stop(): Unit = synchronized {
    running.foreach(_.process.destroyForcibly())
    running = None
  }

  /** One question at a time: a compilation takes milliseconds. */
  private def answered(line: String): String = synchronized {
    val current = running.filter(_.process.isAlive).getOrElse(start())
    running = Some(current)
    asked.incrementAndGet()
    current.ask(line)
  }

  private def start(): Running = {
    val builder = new ProcessBuilder(python, "-m", "pyspark_paralagg.sql")
    val paths = Seq(path, sys.env.getOrElse("PYTHONPATH", "")).filter(_.nonEmpty)
    if (paths.nonEmpty) builder.environment.put("PYTHONPATH", paths.mkString(File.pathSeparator))
    started.incrementAndGet()
    try new Running(builder.start())
    catch { case e: IOException => throw problem(s"does not start: ${e.getMessage}", e) }
  }

  private def problem(what: String, cause: Throwable): ParalaggException = new ParalaggException(
    "PARALAGG_SQL_COMPILER",
    s"the compiler of recursive queries, $python -m pyspark_paralagg.sql, $what.",
    s"set ${PythonCompiler.Python} to a Python that has pyspark-paralagg.",
    cause)
}

object CompilerProcess {
  private val Kept = 512
  private val TailLines = 20
  private val TimeoutSeconds = 120L

  /** Processes that were started, and questions asked of them, since this JVM started. */
  val started = new AtomicLong
  val asked = new AtomicLong

  private def daemon(what: String, stream: java.io.InputStream)(each: String => Unit, end: () => Unit): Thread = {
    val reader = new BufferedReader(new InputStreamReader(stream, UTF_8))
    val thread = new Thread(
      () =>
        try Iterator.continually(reader.readLine()).takeWhile(_ != null).foreach(each)
        catch { case _: IOException => () } // closed under it: the process is gone
        finally end(),
      s"paralagg-compiler-$what")
    thread.setDaemon(true)
    thread.start()
    thread
  }
}
