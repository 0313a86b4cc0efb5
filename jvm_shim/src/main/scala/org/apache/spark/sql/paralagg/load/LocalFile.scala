package org.apache.spark.sql.paralagg.load

import java.io.IOException
import java.nio.channels.{ClosedChannelException, FileChannel}
import java.nio.file.{Path, StandardOpenOption}

import org.apache.spark.SparkEnv
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}

/**
 * A file in one of Spark's local directories. It has no name once it is open (Linux, macOS), so nothing is left, however
 * the process ends.
 */
private[paralagg] final class LocalFile(content: String) {
  private val path: Path = SparkEnv.get.blockManager.diskBlockManager.createTempLocalBlock()._2.toPath

  val channel: FileChannel = attempt("open") {
    FileChannel.open(
      path, StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE,
      StandardOpenOption.DELETE_ON_CLOSE)
  }

  /** Does `work`; an error of the file system becomes one that names the file. */
  def attempt[T](what: String)(work: => T): T =
    try work
    catch {
      case e: ClosedChannelException => throw e // the task that has written it ended, or was interrupted
      case e: IOException =>
        throw new ParalaggException(
          ErrorCodes.DiskFull,
          s"cannot $what $path, which holds $content that memory does not: ${e.getMessage}.",
          "free space on it, set spark.local.dir to a folder on another disk, or give executors more memory.")
    }
}
