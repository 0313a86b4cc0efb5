package org.apache.spark.sql.paralagg.offload

import java.io.{File, IOException}

import scala.collection.mutable

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.internal.Logging
import org.apache.spark.util.{ShutdownHookManager, Utils}

/**
 * A folder of this executor, in its `spark.local.dir`, for as long as one of its tasks needs it. Where machines share
 * no files, the ranks of an executor find here what its tasks have got for them, and leave here what these give on.
 */
private[paralagg] final class RanksFolder(val folder: File) {

  /** Pieces that have come to a task; `numbered` tells the input of each. */
  def put(part: Int, pieces: Iterator[(Int, Array[Byte])], numbered: PiecePartitioner): Unit =
    pieces.zipWithIndex.foreach { case ((key, bytes), n) =>
      val input = PrivateFiles.createFolders(new File(folder, s"in/${numbered.input(key)}"))
      val file = input.resolve(s"$part-$n.arrow").toFile
      ArrowFiles.onDisk(file)(PrivateFiles.write(file, bytes))
    }

  /** What ranks wrote of a relation, by partition. */
  def results(relation: String): Iterator[(Int, Array[Byte])] = {
    val files = Option(new File(folder, s"out/$relation").listFiles()).toSeq.flatten.sortBy(_.getName)
    files.iterator.flatMap { file =>
      val RanksFolder.Part(number) = file.getName
      ArrowFiles.split(file).map(number.toInt -> _)
    }
  }
}

private[paralagg] object RanksFolder extends Logging {
  private val Part = raw"part-(\d+)\.arrow".r
  private val open = mutable.Map.empty[String, (File, Int)] // with the number of tasks

  /** The same one for all tasks of this executor that give the same name; deleted with the last of them that runs. */
  def of(name: String, context: TaskContext): RanksFolder = synchronized {
    val env = SparkEnv.get
    // Spark picks any of its local directories: only the first task asks.
    val (folder, tasks) =
      open.getOrElse(name, (new File(Utils.getLocalDir(env.conf), s"paralagg-${env.executorId}-$name"), 0))
    open(name) = (folder, tasks + 1)
    context.addTaskCompletionListener[Unit](_ => leave(name))
    PrivateFiles.createFolders(folder)
    ShutdownHookManager.registerShutdownDeleteDir(folder)
    new RanksFolder(folder)
  }

  private def leave(name: String): Unit = synchronized {
    val (folder, tasks) = open(name)
    open(name) = (folder, tasks - 1)
    if (tasks == 1) {
      open -= name
      ShutdownHookManager.removeShutdownDeleteDir(folder)
      try PrivateFiles.deleteFolder(folder)
      catch {
        case e: IOException =>
          logInfo(s"ranks that are being ended still write to $folder, which their guard deletes", e)
      }
    }
  }
}
