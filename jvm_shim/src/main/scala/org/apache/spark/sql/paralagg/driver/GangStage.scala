package org.apache.spark.sql.paralagg.driver

import org.apache.spark.{
  Dependency, OneToOneDependency, Partition, PartitionIdPassthrough, ShuffleDependency, SparkContext, TaskContext
}
import org.apache.spark.rdd.{DeterministicLevel, RDD, ShuffledRDD}
import org.apache.spark.sql.paralagg.load.{BlocksCodec, InputSource, Loader}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.types.{DoubleType, FloatType}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** The gang-scheduled stage: an RDD of (partition of the result, block). */
object GangStage {

  /**
   * Creates the stage. Under `local[N]` all tasks share this JVM, and the gang reads its inputs itself. Otherwise map
   * tasks pack them, and the gang reads shuffle blocks. `indexed` are the inputs of kept indexes, which have no shuffle:
   * the gang reads them itself, if it does not find the indexes.
   */
  def apply(
      sc: SparkContext, job: GangJob, sources: Seq[InputSource], indexed: Seq[InputSource]): RDD[(Int, Array[Byte])] = {
    if (sc.isLocal) {
      val below = sources.flatMap(s => shuffles(s.rdd)).distinct
      val after = below.map(s => new OneToOneDependency(new AfterShuffle(sc, s, job.tasks)))
      new GangRDD(sc, job.copy(direct = true), sources, indexed, after)
    } else {
      val packed = sc.union(sources.map(Packing(job, _)))
      val blocks = new ShuffledRDD[Int, Array[Byte], Array[Byte]](packed, new PartitionIdPassthrough(job.tasks))
      val dependencies = Seq(new OneToOneDependency(blocks))
      new GangRDD(sc, job.copy(direct = indexed.nonEmpty), Nil, indexed, dependencies)
    }
  }

  /** Returns the shuffles below an input. As dependencies of the gang they run before it, and again after a loss. */
  private def shuffles(rdd: RDD[_]): Seq[Dependency[_]] = rdd.dependencies.flatMap {
    case d: ShuffleDependency[_, _, _] => Seq(d)
    case d => shuffles(d.rdd)
  }

  /** Returns the determinism: sums of floats depend on the order of rows, so a retry must not mix with a former run. */
  private[paralagg] def determinism(stratum: StratumSpec): DeterministicLevel.Value = {
    val sums = stratum.relations.flatMap(_.dependents).filter { d =>
      d.isSum || d.merging.isCounted || d.custom.isDefined
    }
    if (sums.exists(d => d.column.dataType == DoubleType || d.column.dataType == FloatType))
      DeterministicLevel.INDETERMINATE
    else DeterministicLevel.UNORDERED
  }
}

/** The partitions that a gang task reads: of inputs that it reads itself, by input, and the packed one. */
private case class GangPartition(index: Int, inputs: Array[Array[Partition]], packed: Option[Partition])
    extends Partition

/**
 * The RDD of the gang. Inputs that it reads itself (`inputs`, and `indexed` if it has to) are no dependencies, only the
 * shuffles below them are. So a barrier stage reads any number of their partitions, and passes their words in memory.
 */
private final class GangRDD(
    sc: SparkContext,
    job: GangJob,
    inputs: Seq[InputSource],
    indexed: Seq[InputSource],
    @transient dependsOn: Seq[Dependency[_]])
    extends RDD[(Int, Array[Byte])](sc, dependsOn) {

  @transient protected lazy override val isBarrier_ : Boolean = true

  override protected def getPartitions: Array[Partition] = {
    val shares = (inputs ++ indexed).map(_.shares(job.tasks))
    val packed = packedBlocks.map(_.partitions)
    Array.tabulate(job.tasks)(t => GangPartition(t, shares.map(_(t)).toArray, packed.map(_(t))))
  }

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    job.kept.flatMap(_.take).toSeq.flatMap(KeptStates.locations(sparkContext, _, split.index))

  override def compute(split: Partition, context: TaskContext): Iterator[(Int, Array[Byte])] = {
    val partition = split.asInstanceOf[GangPartition]
    new GangTask(job, context).run { (store, checkWith, isWhole) =>
      val loader = new Loader(job.routes, job.inputTypes, job.tasks, split.index, store.add)
      val check = () => checkWith(loader.strings)
      val read = if (isWhole) inputs ++ indexed else inputs
      for ((source, shares) <- read.zip(partition.inputs); share <- shares)
        source.load(loader, share, context, check)
      val codec = new BlocksCodec(job.routes.all)
      val received =
        for (rdd <- packedBlocks.toSeq; p <- partition.packed.toSeq; (_, bytes) <- rdd.iterator(p, context)) yield {
          check()
          val blocks = codec.decode(bytes, loader.strings)
          blocks.foreach(store.add)
          blocks
        }
      val blocks = loader.blocks()
      blocks(split.index) = blocks(split.index) ++ received.flatten
      (blocks, loader.strings)
    }
  }

  private def packedBlocks: Option[RDD[(Int, Array[Byte])]] = dependencies.collectFirst {
    case d: OneToOneDependency[_] if !d.rdd.isInstanceOf[AfterShuffle] => d.rdd.asInstanceOf[RDD[(Int, Array[Byte])]]
  }

  override protected def getOutputDeterministicLevel: DeterministicLevel.Value = GangStage.determinism(job.stratum)
}

/**
 * An empty RDD that depends on a shuffle. Spark refuses a barrier stage with an RDD that depends on more than one
 * barrier RDD, and it also counts those behind shuffles, such as the results of other fixpoints. This RDD hides them.
 */
private final class AfterShuffle(sc: SparkContext, @transient shuffle: Dependency[_], tasks: Int)
    extends RDD[(Int, Array[Byte])](sc, Seq(shuffle)) {

  override protected def getPartitions: Array[Partition] = Array.tabulate(tasks)(GangPartition(_, Array.empty, None))

  override def compute(split: Partition, context: TaskContext): Iterator[(Int, Array[Byte])] = Iterator.empty
}

/** The map tasks that pack partitions of one source for the gang's tasks, if these do not read the input themselves. */
private[paralagg] object Packing {

  /** The rows packed at a time, which bounds the memory of a map task. */
  private val ChunkRows = 1 << 20

  def apply(job: GangJob, source: InputSource): RDD[(Int, Array[Byte])] = {
    val uses = source.uses
    if (source.batches != null) {
      coalesced(source.batches, job.tasks).mapPartitions { batches =>
        chunks(batches, job)((loader, check) => loader.readBatches(uses, takeRows(batches), check))
      }
    } else {
      coalesced(source.rows, job.tasks).mapPartitions { rows =>
        chunks(rows, job)((loader, check) => loader.readRows(uses.head.input, rows.take(ChunkRows), check))
      }
    }
  }

  /** Coalesces many partitions into as many as the gang has tasks; Spark's default is 200 small map tasks. */
  private[paralagg] def coalesced[T](rdd: RDD[T], tasks: Int): RDD[T] =
    if (rdd.getNumPartitions > 2 * tasks) rdd.coalesce(tasks) else rdd

  private def chunks(input: Iterator[_], job: GangJob)(
      fill: (Loader, () => Unit) => Unit): Iterator[(Int, Array[Byte])] = {
    val context = TaskContext.get()
    val codec = new BlocksCodec(job.routes.all)
    Iterator.continually(input.hasNext).takeWhile(identity).flatMap { _ =>
      val loader = new Loader(job.routes, job.inputTypes, job.tasks, context.partitionId())
      fill(loader, () => context.killTaskIfInterrupted())
      loader.blocks().iterator.zipWithIndex.map { case (blocks, target) =>
        (target, codec.encode(blocks.filter(_.rows > 0), loader.strings))
      }
    }
  }

  private def takeRows(batches: Iterator[ColumnarBatch]): Iterator[ColumnarBatch] = {
    var rows = 0
    Iterator.continually(rows < ChunkRows && batches.hasNext).takeWhile(identity).map { _ =>
      val batch = batches.next()
      rows += batch.numRows()
      batch
    }
  }
}
