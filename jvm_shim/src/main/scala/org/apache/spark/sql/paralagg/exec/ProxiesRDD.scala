package org.apache.spark.sql.paralagg.exec

import java.io.{File, IOException}
import java.util.concurrent.TimeUnit

import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.{OneToOneDependency, Partition, SparkContext, SparkEnv, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.util.Utils

/**
 * Ranks inside of tasks, without ssh: a gang with a task for each rank. hydra (MPICH's process manager) runs on the driver
 * and says which proxies to start; the first task of each executor starts one, and that starts the executor's ranks. Where
 * no files are shared, it starts them in a folder with what has come to the executor's tasks.
 *
 * Whether the ranks succeeded is not told here but to those who read the result: a gang that fails is tried four times.
 */
private final class ProxiesRDD(sc: SparkContext, below: RDD[(Int, Array[Byte])], @transient private val run: OffloadRun)
    extends RDD[(Int, Array[Byte])](sc, Seq(new OneToOneDependency(below))) {
  private val runId = run.id
  private val python = run.offload.python
  private val env = run.offload.env
  private val shuffle = OffloadStages.shuffleBelow(this)
  private val result = run.offload.result
  private val plan = if (run.offload.isShared) None else Some(JsonMethods.compact(run.offload.plan))

  private def pieces: PiecePartitioner = new PiecePartitioner(partitions.length)

  @transient protected lazy override val isBarrier_ : Boolean = true

  override protected def getPartitions: Array[Partition] = below.partitions

  override def compute(split: Partition, context: TaskContext): Iterator[(Int, Array[Byte])] = {
    GangTask.checkWhole(context, partitions.length)
    val me = (context.stageId(), context.stageAttemptNumber())
    val folder = plan.map(_ => RanksFolder.of(s"$runId-${me._1}-${me._2}", context))
    folder.foreach(_.put(split.index, firstParent[(Int, Array[Byte])].iterator(split, context), pieces))
    val command = Offloads.ask(
      ("join", runId, me._1, me._2, split.index, SparkEnv.get.executorId, OffloadStages.execution(context)),
      context).getOrElse(OffloadStages.gone(shuffle, split.index))
    val problem = if (command.isEmpty) "" else runProxy(JsonMethods.parse(command).children, folder, context)
    Offloads.ask(("over", runId, me._1, problem), context)
    if (command.isEmpty) Iterator.empty else folder.fold(Iterator.empty[(Int, Array[Byte])])(_.results(result))
  }

  /** Until it ends; what kept it from starting, or nothing. The guard ends all below it when this JVM or task does. */
  private def runProxy(words: Seq[JValue], folder: Option[RanksFolder], context: TaskContext): String = {
    val command = python ++ Seq("-m", "mpi_backend.guard") ++ words.collect { case JString(word) => word }
    val builder =
      new ProcessBuilder(command: _*).redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD)
    env.foreach { case (key, value) => builder.environment().put(key, value) }
    try {
      folder.foreach { f =>
        PrivateFiles.write(new File(f.folder, "plan.json"), plan.get)
        builder.environment().put(ProxiesRDD.FolderVariable, f.folder.getPath)
      }
      val guard = builder.start()
      try {
        while (!guard.waitFor(20, TimeUnit.MILLISECONDS)) context.killTaskIfInterrupted()
        if (guard.exitValue() == ProxiesRDD.NotStarted)
          s"${command(python.length + 2)} cannot be run on ${Utils.localHostName()}"
        else ""
      } finally guard.getOutputStream.close()
    } catch {
      case e: IOException => s"${python.head} cannot be run on ${Utils.localHostName()}: ${e.getMessage}"
    }
  }
}

private object ProxiesRDD {

  /** The guard's exit code where there is no such command. */
  val NotStarted = 127

  /** `FOLDER_VARIABLE` of `mpi_backend/signs.py`. */
  val FolderVariable = "PARALAGG_MPI_FOLDER"
}
