package org.apache.spark.sql.paralagg.offload

import java.io.{File, IOException}

import scala.util.control.NonFatal

import org.apache.spark.{OneToOneDependency, Partition, Partitioner, ShuffleDependency, SparkContext, TaskContext}
import org.apache.spark.rdd.{DeterministicLevel, RDD, ShuffledRDD}
import org.apache.spark.shuffle.MetadataFetchFailedException
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.driver.{GangStage, IndexPartitioner, Packing}
import org.apache.spark.sql.paralagg.load.InputSource
import org.apache.spark.sql.types.DataType
import org.apache.spark.util.Utils

/**
 * The stages of an offloaded fixpoint: tasks write the inputs to files; where ranks run on executors, a gang of tasks
 * lends them its slots (`ProxiesRDD`); tasks wait for the ranks and read what these wrote.
 *
 * What they read leaves through a shuffle, so it outlives the files. Where all see the same files no record moves
 * between the stages; the empty shuffles are how Spark knows what is done, and what to run again. Else the gang's tasks
 * write what comes to them where their ranks are (`RanksFolder`), and give on what these wrote.
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
  val results: RDD[(Int, Array[Byte])] = new ResultsRDD(sc, shuffled(gang.getOrElse(inputs), partitions), run)

  val rdds: Set[Int] = Set(inputs.id, results.id) ++ gang.map(_.id)
  val gangShuffle: Option[Int] = gang.map(_ => OffloadStages.shuffleBelow(results))
  val shuffles: Seq[Int] = (gang.toSeq :+ results).map(OffloadStages.shuffleBelow)

  /** As many as the first stage writes. */
  val files: Int = inputs.getNumPartitions

  private def shuffled(rdd: RDD[(Int, Array[Byte])], tasks: Int): RDD[(Int, Array[Byte])] =
    new ShuffledRDD[Int, Array[Byte], Array[Byte]](rdd, new IndexPartitioner(tasks))

  private def written(source: InputSource, types: Seq[DataType]): RDD[(Int, Array[Byte])] = {
    val (id, input, ordinals) = (run.id, source.input, source.ordinals)
    val target = if (run.offload.isShared) None else Some(new PiecePartitioner(run.offload.ranks))
    val tasks = math.max(partitions, sc.defaultParallelism)
    if (source.batches != null) Packing.coalesced(source.batches, tasks).mapPartitionsInternal { batches =>
      OffloadStages.write(id, input, types, target)((file, check) => file.batches(batches, ordinals, check))
    }
    else Packing.coalesced(source.rows, tasks).mapPartitionsInternal { rows =>
      OffloadStages.write(id, input, types, target)((file, check) => file.rows(rows, check))
    }
  }
}

private[paralagg] object OffloadStages {
  private val Causes = 8
  private val FullDisk = Seq("No space left on device", "Disk quota exceeded")

  /** Writes the rows of one partition; no record comes of it, or with `target` all rows as pieces. */
  def write(run: Long, input: Int, types: Seq[DataType], target: Option[PiecePartitioner])(
      fill: (ArrowFile, () => Unit) => Unit): Iterator[(Int, Array[Byte])] = {
    val context = TaskContext.get()
    val part = context.partitionId() // among all inputs' partitions
    val folder = new File(Offloads.ask(("begin", run, context.stageId(), part, input), context).getOrElse(
        throw new IllegalStateException(s"run $run is over")))
    def fillFile(writing: File, file: File): Unit = {
      try fill(new ArrowFile(types, writing, file), () => context.killTaskIfInterrupted())
      catch { case NonFatal(e) if isOfTheDisk(e) => throw full(folder.getParentFile, e) }
      Offloads.ask(("wrote", run, context.stageId(), part), context)
    }
    target match {
      case None =>
        if (!new File(folder, StagingFolder.Marker).exists()) throw notShared(folder.getParentFile)
        fillFile(new File(folder, s"writing/$part-${context.taskAttemptId()}"),
          new File(folder, s"in/$input/$part.arrow"))
        Iterator.empty
      case Some(pieces) =>
        val own = RanksFolder.of(s"$run-input-${context.taskAttemptId()}", context)
        val file = new File(own.folder, "rows.arrow")
        fillFile(new File(own.folder, "writing"), file)
        ArrowFiles.split(file).zipWithIndex.map { case (piece, n) => pieces.key(input, part + n) -> piece }
    }
  }

  /** Arrow wraps what the system says, once or twice; rows that cannot be read raise such exceptions, too. */
  private def isOfTheDisk(e: Throwable): Boolean =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(Causes).exists {
      case io: IOException => FullDisk.exists(String.valueOf(io.getMessage).contains)
      case _ => false
    }

  private def full(folder: File, e: Throwable): ParalaggException = new ParalaggException(
    ErrorCodes.MpiStaging,
    s"the disk of the staging directory $folder on ${Utils.localHostName()} is full.",
    "free space there, or set spark.paralagg.mpi.stagingDir to a directory that driver, executors and ranks can write to.",
    e)

  def notShared(folder: File): ParalaggException = new ParalaggException(
    ErrorCodes.MpiStaging,
    s"what others write to the staging directory $folder is not there on ${Utils.localHostName()}.",
    "set spark.paralagg.mpi.stagingDir to a directory that driver, executors and ranks share.")

  def shuffleBelow(rdd: RDD[_]): Int =
    rdd.dependencies.head.rdd.dependencies.head.asInstanceOf[ShuffleDependency[_, _, _]].shuffleId

  /** By this Spark learns that what the stage below did is gone, and runs that again. */
  def gone(shuffle: Int, part: Int): Nothing =
    throw new MetadataFetchFailedException(shuffle, part, "the files of an offloaded fixpoint were deleted")

  def execution(context: TaskContext): String = context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
}

/** Blocks of the result, one partition a file of the ranks. */
private final class ResultsRDD(sc: SparkContext, below: RDD[(Int, Array[Byte])], @transient private val run: OffloadRun)
    extends RDD[(Int, Array[Byte])](sc, Seq(new OneToOneDependency(below))) {
  private val runId = run.id // `run` is known for as long as this is
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

/** Keys of pieces of inputs, which say the input and the task that gets the piece. */
private[paralagg] final class PiecePartitioner(override val numPartitions: Int) extends Partitioner {
  def key(input: Int, turn: Int): Int = input * numPartitions + turn % numPartitions
  def input(key: Int): Int = key / numPartitions
  override def getPartition(key: Any): Int = key.asInstanceOf[Int] % numPartitions
}
