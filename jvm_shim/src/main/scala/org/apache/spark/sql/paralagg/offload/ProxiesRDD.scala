package org.apache.spark.sql.paralagg.offload

import java.io.{File, IOException}

import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.{OneToOneDependency, Partition, SparkContext, SparkEnv, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.paralagg.ErrorCodes
import org.apache.spark.sql.paralagg.driver.GangTask
import org.apache.spark.util.Utils

/**
 * The gang that runs ranks inside of its tasks, one task a rank, without ssh. hydra (MPICH's process manager) runs on
 * the driver and decides which proxies to start. The first task of each executor starts one, and this starts the
 * executor's ranks. Without shared files their folder has the pieces of the executor's tasks.
 *
 * A failure of ranks is not thrown here but where the result is read: Spark would try a failed gang four times.
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
    val stage = (context.stageId(), context.stageAttemptNumber())
    val folder = plan.map(_ => RanksFolder.of(s"$runId-${stage._1}-${stage._2}", context))
    folder.foreach(_.put(split.index, firstParent[(Int, Array[Byte])].iterator(split, context), pieces))
    val command = Offloads.ask(
      ("join", runId, stage._1, stage._2, split.index, SparkEnv.get.executorId, OffloadStages.execution(context)),
      context).getOrElse(OffloadStages.gone(shuffle, split.index))
    val problem = if (command.isEmpty) None else runProxy(JsonMethods.parse(command).children, folder, context)
    val (code, text) = problem.getOrElse(("", ""))
    Offloads.ask(("over", runId, stage._1, code, text), context)
    if (command.isEmpty) Iterator.empty
    else folder.fold[Iterator[(Int, Array[Byte])]](Iterator.empty)(_.results(result))
  }

  /** Runs a proxy and returns a problem that hydra does not report. Its guard ends it with this JVM or task. */
  private def runProxy(
      words: Seq[JValue], folder: Option[RanksFolder], context: TaskContext): Option[(String, String)] = {
    def missing(text: String) = Some((ErrorCodes.MpiNoLauncher, text))
    def failed(text: String) = Some((ErrorCodes.MpiRankFailed, text))
    val host = Utils.localHostName()
    val command = python ++ Seq("-m", "mpi_backend.launch.guard") ++ words.collect { case JString(word) => word }
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
        val stop = new ProcessStop(guard)
        stop.await(20)(context.killTaskIfInterrupted())
        guard.exitValue() match {
          case _ if stop.hasKilled =>
            failed(s"the guard of the ranks on $host has been stopped for ${ProcessStop.Seconds} s")
          case ProxiesRDD.NotStarted => missing(s"${command(python.length + 2)} cannot be run on $host")
          case ProxiesRDD.ProxyKilled => failed(s"hydra's proxy on $host, which started the ranks there, was killed")
          case ProxiesRDD.GuardKilled => failed(s"the guard of the ranks on $host was killed")
          case _ => None
        }
      } finally guard.getOutputStream.close()
    } catch {
      case e: IOException => missing(s"${python.head} cannot be run on $host: ${e.getMessage}")
    }
  }
}

private object ProxiesRDD {

  /** The guard's exit code if there is no such command. */
  val NotStarted = 127

  /** The guard's exit code if the proxy was killed by signal 9, or was stopped for too long. */
  val ProxyKilled = 247

  /** Java's exit code for signal 9. */
  val GuardKilled = 137

  /** `FOLDER_VARIABLE` of `mpi_backend/launch/messages.py`. */
  val FolderVariable = "PARALAGG_MPI_FOLDER"
}
