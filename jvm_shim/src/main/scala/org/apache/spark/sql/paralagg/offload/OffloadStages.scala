package org.apache.spark.sql.paralagg.offload

import java.io.File

import org.apache.spark.{
  OneToOneDependency, Partition, Partitioner, PartitionIdPassthrough, ShuffleDependency, SparkContext, TaskContext
}
import org.apache.spark.rdd.{DeterministicLevel, RDD, ShuffledRDD}
import org.apache.spark.shuffle.MetadataFetchFailedException
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.driver.{GangStage, Packing}
import org.apache.spark.sql.paralagg.load.{InputSource, InputUse}
import org.apache.spark.sql.types.DataType
import org.apache.spark.util.Utils

/**
 * The stages of an offloaded fixpoint. Tasks write the inputs to files. If ranks run on executors, a gang of tasks
 * gives them its slots (`ProxiesRDD`). Tasks wait for the ranks and read their files.
 *
 * The result leaves through a shuffle, so it outlives the files. With shared files no records move between the stages;
 * from the empty shuffles Spark knows what is done, and what to run again. Otherwise the gang's tasks write their
 * pieces to a folder of the executor (`RanksFolder`), and return what the ranks wrote there.
 */
private[paralagg] final class OffloadStages(
    sc: SparkContext, run: OffloadRun, sources: Seq[(InputSource, Seq[DataType])], partitions: Int) {

  private val inputs: RDD[(Int, Array[Byte])] = sc.union(sources.map { case (s, types) => written(s, types) })
  private val gang: Option[RDD[(Int, Array[Byte])]] =
    if (run.offload.isOnExecutors) {
      val pieces = new ShuffledRDD[Int, Array[Byte], Array[Byte]](inputs, new PiecePartitioner(run.offload.ranks))
      Some(new ProxiesRDD(sc, pieces, run))
    } else None

  /** Blocks of the result, by partition. */
  val results: RDD[(Int, Array[Byte])] = {
    val below = gang.getOrElse(inputs)
    val blocks = new ShuffledRDD[Int, Array[Byte], Array[Byte]](below, new PartitionIdPassthrough(partitions))
    new ResultsRDD(sc, blocks, run)
  }

  val rdds: Set[Int] = Set(inputs.id, results.id) ++ gang.map(_.id)
  val gangShuffle: Option[Int] = gang.map(_ => OffloadStages.shuffleBelow(results))
  val shuffles: Seq[Int] = (gang.toSeq :+ results).map(OffloadStages.shuffleBelow)

  /** The number of files that the first stage writes. */
  val files: Int = inputs.getNumPartitions

  private def written(source: InputSource, types: Seq[DataType]): RDD[(Int, Array[Byte])] = {
    val (id, InputUse(input, ordinals)) = (run.id, source.uses.head)
    val target = if (run.offload.isShared) None else Some(new PiecePartitioner(run.offload.ranks))
    val tasks = math.max(partitions, sc.defaultParallelism)
    if (source.batches != null) Packing.coalesced(source.batches, tasks).mapPartitionsInternal { batches =>
      OffloadStages.write(id, input, types, target)((file, check) => file.writeBatches(batches, ordinals, check))
    }
    else Packing.coalesced(source.rows, tasks).mapPartitionsInternal { rows =>
      OffloadStages.write(id, input, types, target)((file, check) => file.writeRows(rows, check))
    }
  }
}

private[paralagg] object OffloadStages {
  /** Writes the rows of one partition to a shared file; with `target` it returns all rows as pieces instead. */
  def write(run: Long, input: Int, types: Seq[DataType], target: Option[PiecePartitioner])(
      fill: (ArrowFile, () => Unit) => Unit): Iterator[(Int, Array[Byte])] = {
    val context = TaskContext.get()
    val part = context.partitionId() // among all inputs' partitions
    val folder = new File(Offloads.ask(("begin", run, context.stageId(), part, input), context).getOrElse(
        throw new IllegalStateException(s"run $run is over")))
    def fillFile(writing: File, file: File): Unit = {
      fill(new ArrowFile(types, writing, file), () => context.killTaskIfInterrupted())
      Offloads.ask(("wrote", run, context.stageId(), part), context)
    }
    target match {
      case None =>
        if (!new File(folder, StagingFolder.Marker).exists()) throw notShared(folder.getParentFile)
        fillFile(new File(folder, s"writing/$part-${context.taskAttemptId()}"),
          new File(folder, s"in/$input/$part.arrow"))
        Iterator.empty
      case Some(pieces) =>
        val local = RanksFolder.of(s"$run-input-${context.taskAttemptId()}", context)
        val file = new File(local.folder, "rows.arrow")
        fillFile(new File(local.folder, "writing"), file)
        ArrowFiles.split(file).zipWithIndex.map { case (piece, n) => pieces.key(input, part + n) -> piece }
    }
  }

  def notShared(folder: File): ParalaggException = new ParalaggException(
    ErrorCodes.MpiStaging,
    s"what others write to the staging directory $folder is not there on ${Utils.localHostName()}.",
    "set spark.paralagg.mpi.stagingDir to a directory that driver, executors and ranks share.")

  def shuffleBelow(rdd: RDD[_]): Int =
    rdd.dependencies.head.rdd.dependencies.head.asInstanceOf[ShuffleDependency[_, _, _]].shuffleId

  /** Makes Spark run the stage below again, whose files are gone. */
  def gone(shuffle: Int, part: Int): Nothing =
    throw new MetadataFetchFailedException(shuffle, part, "the files of an offloaded fixpoint were deleted")

  def execution(context: TaskContext): String = context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
}

/** The blocks of the result, one partition for each file of the ranks. */
private final class ResultsRDD(sc: SparkContext, below: RDD[(Int, Array[Byte])], @transient private val run: OffloadRun)
    extends RDD[(Int, Array[Byte])](sc, Seq(new OneToOneDependency(below))) {
  private val runId = run.id // the driver keeps `run` as long as this RDD
  private val folder = run.offload.result
  private val isShared = run.offload.isShared
  private val level = GangStage.determinism(run.spec.program)
  private val shuffle = OffloadStages.shuffleBelow(this)

  override protected def getPartitions: Array[Partition] = below.partitions

  override def compute(split: Partition, context: TaskContext): Iterator[(Int, Array[Byte])] = {
    val out = Offloads.ask(("await", runId, context.stageId(), OffloadStages.execution(context)), context)
      .getOrElse(OffloadStages.gone(shuffle, split.index))
    if (isShared) {
      val file = new File(out, f"$folder/part-${split.index}%05d.arrow")
      if (!file.exists()) throw OffloadStages.notShared(new File(out).getParentFile.getParentFile)
      ArrowFiles.split(file).map(split.index -> _)
    } else firstParent[(Int, Array[Byte])].iterator(split, context)
  }

  override protected def getOutputDeterministicLevel: DeterministicLevel.Value = level
}

/** The keys of pieces of inputs, which encode the input and the task that gets the piece. */
private[paralagg] final class PiecePartitioner(override val numPartitions: Int) extends Partitioner {
  def key(input: Int, turn: Int): Int = input * numPartitions + turn % numPartitions
  def input(key: Int): Int = key / numPartitions
  override def getPartition(key: Any): Int = key.asInstanceOf[Int] % numPartitions
}
