package org.apache.spark.sql.paralagg.offload

import java.nio.file.{Files, Path}
import java.util.concurrent.TimeUnit

import scala.util.Try

/**
 * The end of a child process that is stopped (SIGSTOP) and not continued, on Linux only. The time in which this
 * JVM is stopped itself does not count.
 */
private[paralagg] final class ProcessStop(process: Process) {
  import ProcessStop._
  private var stopped = 0L
  private var checked = System.nanoTime()

  /** True once the process has been killed because it was stopped for `Seconds`. */
  @volatile var hasKilled = false

  /** Waits for the end of the process, and kills it if it is stopped for `Seconds`; calls `check` every `millis`. */
  def await(millis: Long)(check: => Unit): Unit = while (!process.waitFor(millis, TimeUnit.MILLISECONDS)) {
    check
    if (!hasKilled && isExpired()) {
      hasKilled = true
      kill()
    }
  }

  private def isExpired(): Boolean = {
    val now = System.nanoTime()
    if (now - checked >= Second) {
      stopped = if (isStopped(process.pid())) stopped + math.min(now - checked, 2 * Second) else 0L
      checked = now
    }
    stopped > Seconds * Second
  }

  /** Sends SIGKILL to the process and all descendants. */
  private def kill(): Unit = {
    val descendants = process.descendants()
    process.destroyForcibly()
    descendants.forEach(child => child.destroyForcibly())
  }
}

private[paralagg] object ProcessStop {
  val Seconds = 10L
  private val Second = 1000000000L

  /** Reads the state after the name, which is in brackets and may contain any character. */
  private def isStopped(pid: Long): Boolean = Try {
    val stat = Files.readString(Path.of(s"/proc/$pid/stat"))
    "Tt".indexOf(stat.charAt(stat.lastIndexOf(')') + 2).toInt) >= 0
  }.getOrElse(false)
}
