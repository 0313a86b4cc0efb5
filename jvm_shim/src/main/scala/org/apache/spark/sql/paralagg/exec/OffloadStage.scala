package org.apache.spark.sql.paralagg.exec

import java.io.File

import org.apache.spark.{OneToOneDependency, Partition, ShuffleDependency, SparkContext, TaskContext}
import org.apache.spark.rdd.{DeterministicLevel, RDD, ShuffledRDD}
import org.apache.spark.shuffle.MetadataFetchFailedException
import org.apache.spark.sql.paralagg.ParalaggException
import org.apache.spark.sql.types.DataType
import org.apache.spark.util.Utils

/**
 * Two stages of an ordinary job: tasks write the inputs to files, then tasks wait for the ranks and read what these wrote.
 *
 * What they read leaves through a shuffle, so it outlives the files. Between the two stages no record moves; the empty
 * shuffle is how Spark knows which inputs are written, and what to run again.
 */
private[exec] final class OffloadStage(
    sc: SparkContext,
    run: OffloadRun,
    sources: Seq[(InputSource, Seq[DataType])],
    partitions: Int,
    level: DeterministicLevel.Value) {

  val inputs: RDD[(Int, Array[Byte])] = sc.union(sources.map { case (s, types) => written(s, types) })

  /** Blocks of the result, by partition. */
  val results: RDD[(Int, Array[Byte])] = {
    val shuffled = new ShuffledRDD[Int, Array[Byte], Array[Byte]](inputs, new IndexPartitioner(partitions))
    new ResultsRDD(sc, shuffled, run, run.id, run.offload.result, level)
  }

  val shuffle: Int = results.dependencies.head.rdd.dependencies.head.asInstanceOf[ShuffleDependency[_, _, _]].shuffleId

  private def written(source: InputSource, types: Seq[DataType]): RDD[(Int, Array[Byte])] = {
    val (id, input, ordinals) = (run.id, source.input, source.ordinals)
    val tasks = math.max(partitions, sc.defaultParallelism)
    if (source.batches != null) Packing.few(source.batches, tasks).mapPartitionsInternal { batches =>
      OffloadStage.write(id, input, types)((file, check) => file.batches(batches, ordinals, check))
    }
    else Packing.few(source.rows, tasks).mapPartitionsInternal { rows =>
      OffloadStage.write(id, input, types)((file, check) => file.rows(rows, check))
    }
  }
}

private[exec] object OffloadStage {

  /** Writes the rows of one partition; no record comes of it. */
  def write(run: Long, input: Int, types: Seq[DataType])(
      fill: (ArrowFile, () => Unit) => Unit): Iterator[(Int, Array[Byte])] = {
    val context = TaskContext.get()
    val part = context.partitionId() // among all inputs' partitions
    val folder = new File(Offloads.ask(("begin", run, context.stageId(), part, input), context).getOrElse(
      throw new IllegalStateException(s"run $run is over")))
    if (!new File(folder, OffloadRun.Marker).exists()) throw notShared(folder)
    val file = new ArrowFile(types, new File(folder, s"writing/$part-${context.taskAttemptId()}"),
      new File(folder, s"in/$input/$part.arrow"))
    fill(file, () => context.killTaskIfInterrupted())
    Offloads.ask(("wrote", run, context.stageId(), part), context)
    Iterator.empty
  }

  def notShared(folder: File): ParalaggException = new ParalaggException(
    "PARALAGG_MPI_STAGING",
    s"the staging directory ${folder.getParent} of the driver is not there on ${Utils.localHostName()}.",
    "set spark.paralagg.mpi.stagingDir to a directory that driver, executors and ranks share.")
}

/** Blocks of the result, one partition a file of the ranks. */
private final class ResultsRDD(
    sc: SparkContext,
    written: RDD[(Int, Array[Byte])],
    @transient private val run: OffloadRun, // whoever can still run this keeps what the driver knows of it
    id: Long,
    name: String,
    level: DeterministicLevel.Value)
    extends RDD[(Int, Array[Byte])](sc, Seq(new OneToOneDependency(written))) {

  override protected def getPartitions: Array[Partition] = written.partitions

  override def compute(split: Partition, context: TaskContext): Iterator[(Int, Array[Byte])] = {
    val execution = context.getLocalProperty(org.apache.spark.sql.execution.SQLExecution.EXECUTION_ID_KEY)
    val folder = Offloads.ask(("await", id, context.stageId(), execution), context).getOrElse {
      // What the inputs' tasks wrote is gone, and by this Spark knows that they must run again.
      throw new MetadataFetchFailedException(shuffle, split.index, "the files of the inputs were deleted")
    }
    val file = new File(folder, f"out/$name/part-${split.index}%05d.arrow")
    if (!file.exists()) throw OffloadStage.notShared(new File(folder))
    ArrowFiles.split(file).map(split.index -> _)
  }

  private val shuffle = written.dependencies.head.asInstanceOf[ShuffleDependency[_, _, _]].shuffleId

  override protected def getOutputDeterministicLevel: DeterministicLevel.Value = level
}
