package org.apache.spark.sql.paralagg.offload

import java.nio.file.{Files, Path}

import scala.util.Try

/**
 * Whether a child process is stopped (SIGSTOP) and not continued. On Linux; elsewhere none is. The time in which this
 * JVM is stopped itself does not count.
 */
private[paralagg] final class ProcessStop(process: Process) {
  import ProcessStop._
  private var stopped = 0L
  private var looked = System.nanoTime()

  /** Ask a few times a second; true once it has been stopped for `Seconds`. */
  def lasts(): Boolean = {
    val now = System.nanoTime()
    if (now - looked >= Second) {
      stopped = if (isStopped(process.pid())) stopped + math.min(now - looked, 2 * Second) else 0L
      looked = now
    }
    stopped > Seconds * Second
  }

  /** SIGKILL to it and all below. */
  def kill(): Unit = {
    val below = process.descendants()
    process.destroyForcibly()
    below.forEach(child => child.destroyForcibly())
  }
}

private[paralagg] object ProcessStop {
  val Seconds = 10L
  private val Second = 1000000000L

  /** The state stands behind the name, which is in brackets and may have any character. */
  private def isStopped(pid: Long): Boolean = Try {
    val stat = Files.readString(Path.of(s"/proc/$pid/stat"))
    "Tt".indexOf(stat.charAt(stat.lastIndexOf(')') + 2).toInt) >= 0
  }.getOrElse(false)
}
