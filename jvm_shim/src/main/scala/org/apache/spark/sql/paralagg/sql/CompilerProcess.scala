package org.apache.spark.sql.paralagg.sql

import java.io.{BufferedReader, File, InputStreamReader, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Collections, LinkedHashMap => JLinkedHashMap, Map => JMap}
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}
import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.locks.ReentrantLock

import scala.collection.mutable
import scala.util.control.NonFatal

import org.json4s._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException, StaticConfs}

/**
 * A Python that compiles: started at the first question and kept, one line of JSON a question and one an answer. It
 * ends when its standard input does, so it never outlives this JVM. One that has failed in any way, or was interrupted,
 * is never asked again: the next question starts another.
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

    private var questions = 0L

    /** Numbered, so that nothing else on its standard output is taken for the answer. */
    def ask(question: JObject): JValue = {
      questions += 1
      try {
        input.write(JsonMethods.compact(("id" -> questions) ~ question))
        input.write('\n')
        input.flush()
      } catch { case e: IOException => fail("has ended", e) }
      val line = lines.poll(TimeoutSeconds, TimeUnit.SECONDS)
      if (line == null) fail(s"has not answered within $TimeoutSeconds s", null)
      val text = line.getOrElse(fail("has ended", null))
      val answer =
        try JsonMethods.parse(text)
        catch { case NonFatal(e) => fail(s"has answered what is no JSON (${text.take(Shown)})", e) }
      if (answer \ "id" != JInt(questions)) fail(s"has answered what it was not asked (${text.take(Shown)})", null)
      answer
    }

    private def fail(what: String, cause: Throwable): Nothing = {
      // The last words are the interesting ones, and they are lost with the streams of a process that is destroyed.
      if (!process.waitFor(1, TimeUnit.SECONDS)) process.destroyForcibly()
      errors.join(1000)
      val said = tail.synchronized(tail.mkString("\n"))
      throw problem(s"$what${if (said.isEmpty) "" else s"; it said:\n$said"}", cause)
    }
  }

  private val lock = new ReentrantLock
  private var running: Option[Running] = None // under the lock; none while it is asked

  private val answers: JMap[String, Either[Refusal, JValue]] =
    Collections.synchronizedMap(new JLinkedHashMap[String, Either[Refusal, JValue]](16, 0.75f, true) {
      override def removeEldestEntry(eldest: JMap.Entry[String, Either[Refusal, JValue]]): Boolean = size > Kept
    })

  /** The answer to `question`; a Refusal where the program is at fault. */
  def ask(question: JObject): Either[Refusal, JValue] = {
    val text = JsonMethods.compact(question)
    Option(answers.get(text)).getOrElse {
      val answer = answered(question)
      if (!isOfAnotherVersion(answer)) answers.put(text, answer)
      answer
    }
  }

  /** One question at a time: a compilation takes milliseconds. A query that waits, for its turn or an answer, can be cancelled. */
  private def answered(question: JObject): Either[Refusal, JValue] = {
    lock.lockInterruptibly()
    try {
      val current = running.filter(_.process.isAlive).getOrElse(start())
      running = None
      asked.incrementAndGet()
      try {
        val answer = Refusal.or(current.ask(question))
        if (!isOfAnotherVersion(answer)) running = Some(current)
        answer
      } finally if (running.isEmpty) current.process.destroyForcibly()
    } finally lock.unlock()
  }

  /** Such a Python may be replaced while this JVM runs. */
  private def isOfAnotherVersion(answer: Either[Refusal, JValue]): Boolean =
    answer.left.exists(_.code == ErrorCodes.ShimMismatch)

  private def start(): Running = {
    val builder = new ProcessBuilder(python, "-m", "pyspark_paralagg.sql")
    val paths = Seq(path, sys.env.getOrElse("PYTHONPATH", "")).filter(_.nonEmpty)
    if (paths.nonEmpty) builder.environment.put("PYTHONPATH", paths.mkString(File.pathSeparator))
    started.incrementAndGet()
    try new Running(builder.start())
    catch { case e: IOException => throw problem(s"does not start: ${e.getMessage}", e) }
  }

  private def problem(what: String, cause: Throwable): ParalaggException = new ParalaggException(
    ErrorCodes.SqlCompiler,
    s"the compiler of recursive queries, $python -m pyspark_paralagg.sql, $what.",
    s"start the application with ${StaticConfs.Python} set to a Python that has pyspark-paralagg, or call " +
      s"ra.attach(spark, {'${StaticConfs.Python}': ...}).",
    cause)
}

object CompilerProcess {
  private val Kept = 512
  private val TailLines = 20
  private val Shown = 200
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
