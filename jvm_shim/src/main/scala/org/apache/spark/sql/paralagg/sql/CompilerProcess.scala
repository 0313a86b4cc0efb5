package org.apache.spark.sql.paralagg.sql

import java.io.{File, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Collections, LinkedHashMap => JLinkedHashMap, Map => JMap}
import java.util.concurrent.{CompletableFuture, ExecutionException, TimeoutException, TimeUnit}
import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.locks.ReentrantLock

import scala.util.control.NonFatal

import org.json4s._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException, StaticConfs}
import org.apache.spark.sql.paralagg.plan.PlanReader
import org.apache.spark.util.{CircularBuffer, RedirectThread}

/**
 * A Python process that compiles. The first request starts it, and it is kept; a request and an answer are one line of
 * JSON each. It ends with its standard input, so it never outlives this JVM. After any failure or interruption it is
 * replaced.
 *
 * Answers are cached by the text of the request, which is the same in each analysis of a query.
 */
class CompilerProcess(python: String, path: String) {
  import CompilerProcess._

  private class Running(val process: Process) {
    private val input = process.outputWriter(UTF_8)
    private val output = process.inputReader(UTF_8)
    private val tail = new CircularBuffer(TailBytes)
    private val errors = new RedirectThread(process.getErrorStream, tail, "paralagg-compiler-errors")
    errors.start()
    private var requests = 0L

    /** Sends a request and returns its answer. Both have a number, in case of other output on standard output. */
    def send(request: JObject): JValue = {
      requests += 1
      try {
        input.write(JsonMethods.compact(("id" -> requests) ~ request))
        input.write('\n')
        input.flush()
      } catch { case e: IOException => fail("has ended", e) }
      // Another thread reads, so that the wait has a limit and ends with an interrupt.
      val line =
        try Option(CompletableFuture.supplyAsync(() => output.readLine()).get(TimeoutSeconds, TimeUnit.SECONDS))
        catch {
          case e: TimeoutException => fail(s"has not answered within $TimeoutSeconds s", e)
          case _: ExecutionException => None // the process has ended
        }
      val text = line.getOrElse(fail("has ended", null))
      val answer =
        try JsonMethods.parse(text)
        catch { case NonFatal(e) => fail(s"has sent a line that is not JSON (${text.take(ShownChars)})", e) }
      if (answer \ "id" != JInt(requests)) fail(s"has answered another request (${text.take(ShownChars)})", null)
      answer
    }

    private def fail(what: String, cause: Throwable): Nothing = {
      // Destroying the process closes its streams, and the last lines are the important ones.
      if (!process.waitFor(1, TimeUnit.SECONDS)) process.destroyForcibly()
      errors.join(1000)
      val lastLines = tail.toString.trim
      throw problem(s"$what${if (lastLines.isEmpty) "" else s"; its output:\n$lastLines"}", cause)
    }
  }

  private val lock = new ReentrantLock
  private var running: Option[Running] = None // under the lock; none during a request

  private val answers: JMap[String, Either[Refusal, JValue]] =
    Collections.synchronizedMap(new JLinkedHashMap[String, Either[Refusal, JValue]](16, 0.75f, true) {
      override def removeEldestEntry(eldest: JMap.Entry[String, Either[Refusal, JValue]]): Boolean = size > MaxAnswers
    })

  /** Returns the answer to `request`, or a Refusal of the program. */
  def answer(request: JObject): Either[Refusal, JValue] = {
    val text = JsonMethods.compact(request)
    Option(answers.get(text)).getOrElse {
      val answer = send(request)
      if (!hasOtherVersion(answer)) answers.put(text, answer)
      answer
    }
  }

  /** Sends one request at a time, since a compilation takes milliseconds. A waiting query can be cancelled. */
  private def send(request: JObject): Either[Refusal, JValue] = {
    lock.lockInterruptibly()
    try {
      val current = running.filter(_.process.isAlive).getOrElse(start())
      running = None
      asked.incrementAndGet()
      try {
        val reply = current.send(request)
        val answer = PlanReader.option(reply \ "error")(new Refusal(_)).toLeft(reply)
        if (!hasOtherVersion(answer)) running = Some(current)
        answer
      } finally if (running.isEmpty) current.process.destroyForcibly()
    } finally lock.unlock()
  }

  /** Tests for a Python of another version, which may be replaced while this JVM runs. */
  private def hasOtherVersion(answer: Either[Refusal, JValue]): Boolean =
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
  private val MaxAnswers = 512
  private val TailBytes = 4096
  private val ShownChars = 200
  private val TimeoutSeconds = 120L

  /** The number of processes started, and of requests to them, in this JVM. */
  val started = new AtomicLong
  val asked = new AtomicLong
}
