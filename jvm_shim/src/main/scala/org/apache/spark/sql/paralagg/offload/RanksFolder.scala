package org.apache.spark.sql.paralagg.offload

import java.io.{File, IOException}

import scala.collection.mutable

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.internal.Logging
import org.apache.spark.util.Utils

/**
 * A folder of this executor, in its `spark.local.dir`, as long as one of its tasks needs it. Without shared files,
 * tasks write the input of the executor's ranks here and read their output. What a killed executor leaves, the next
 * one there removes (`StagingFolder`).
 */
private[paralagg] final class RanksFolder(val folder: File) {

  /** Writes the pieces that a task received, by input. */
  def put(part: Int, pieces: Iterator[(Int, Array[Byte])], partitioner: PiecePartitioner): Unit =
    pieces.zipWithIndex.foreach { case ((key, bytes), n) =>
      val input = PrivateFiles.createFolders(new File(folder, s"in/${partitioner.input(key)}"))
      val file = input.resolve(s"$part-$n.arrow").toFile
      ArrowFiles.onDisk(file)(PrivateFiles.write(file, bytes))
    }

  /** Returns the blocks of a relation that the ranks wrote, by partition. */
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
  private val open = mutable.Map.empty[String, (StagingFolder, Int)] // with the number of tasks

  /** Returns the folder of this name, which tasks of this executor share; it is deleted after the last of them. */
  def of(name: String, context: TaskContext): RanksFolder = synchronized {
    val env = SparkEnv.get
    // Only the first task calls getLocalDir, since Spark may return another of its directories each time. Its parent
    // is the directory that the executors of the application share on a machine.
    val (staging, tasks) = open.getOrElse(
      name, {
        val shared = new File(Utils.getLocalDir(env.conf)).getParentFile
        (StagingFolder.create(shared, s"${env.executorId}-$name"), 0)
      })
    open(name) = (staging, tasks + 1)
    context.addTaskCompletionListener[Unit](_ => leave(name))
    new RanksFolder(staging.folder)
  }

  private def leave(name: String): Unit = synchronized {
    val (staging, tasks) = open(name)
    open(name) = (staging, tasks - 1)
    if (tasks == 1) {
      open -= name
      try staging.delete()
      catch {
        case e: IOException =>
          logInfo(s"ranks that are being ended still write to ${staging.folder}, which their guard deletes", e)
      }
    }
  }
}
