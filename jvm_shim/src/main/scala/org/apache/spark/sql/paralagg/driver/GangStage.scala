package org.apache.spark.sql.paralagg.driver

import org.apache.spark.{Dependency, OneToOneDependency, Partition, ShuffleDependency, SparkContext, TaskContext}
import org.apache.spark.rdd.{DeterministicLevel, RDD, ShuffledRDD}
import org.apache.spark.sql.paralagg.load.{BlocksCodec, InputSource, Loader}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.types.{DoubleType, FloatType}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** The gang-scheduled stage: an RDD of (partition of the result, block). */
object GangStage {

  /**
   * Under `local[N]` all tasks share this JVM, and the gang reads its inputs itself. Elsewhere a map side packs them, for
   * the gang to read as shuffle blocks.
   */
  def apply(sc: SparkContext, job: GangJob, sources: Seq[InputSource]): RDD[(Int, Array[Byte])] = {
    if (sc.isLocal) {
      val below = sources.flatMap(s => shuffles(s.rdd)).distinct
      val after = below.map(s => new OneToOneDependency(new AfterShuffle(sc, s, job.tasks)))
      new GangRDD(sc, job.copy(direct = true), sources, after)
    } else {
      val packed = sc.union(sources.map(Packing(job, _)))
      val blocks = new ShuffledRDD[Int, Array[Byte], Array[Byte]](packed, new IndexPartitioner(job.tasks))
      new GangRDD(sc, job, Nil, Seq(new OneToOneDependency(blocks)))
    }
  }

  /** Shuffles below an input. As dependencies of the gang they are run before it, and again where their output was lost. */
  private def shuffles(rdd: RDD[_]): Seq[Dependency[_]] = rdd.dependencies.flatMap {
    case d: ShuffleDependency[_, _, _] => Seq(d)
    case d => shuffles(d.rdd)
  }

  /** Sums of floating point numbers depend on the order of rows: a retried stage must not be mixed with a former run. */
  private[paralagg] def determinism(stratum: StratumSpec): DeterministicLevel.Value = {
    val sums = stratum.relations.flatMap(_.dependents).filter { d =>
      d.isSum || d.merging.isCounted || d.custom.isDefined
    }
    if (sums.exists(d => d.column.dataType == DoubleType || d.column.dataType == FloatType))
      DeterministicLevel.INDETERMINATE
    else DeterministicLevel.UNORDERED
  }
}

/** What a gang task reads: partitions of the inputs that it reads itself, by input, and the one that was packed for it. */
private case class GangPartition(index: Int, own: Array[Array[Partition]], packed: Option[Partition]) extends Partition

/**
 * The gang. Inputs that it reads itself (`own`) are no declared dependencies, only the shuffles below them are, so a barrier
 * stage takes any number of their partitions; it hands their words over in memory.
 */
private final class GangRDD(
    sc: SparkContext, job: GangJob, own: Seq[InputSource], @transient dependsOn: Seq[Dependency[_]])
    extends RDD[(Int, Array[Byte])](sc, dependsOn) {

  @transient protected lazy override val isBarrier_ : Boolean = true

  override protected def getPartitions: Array[Partition] = {
    val shares = own.map(_.shares(job.tasks))
    val packed = packedBlocks.map(_.partitions)
    Array.tabulate(job.tasks)(t => GangPartition(t, shares.map(_(t)).toArray, packed.map(_(t))))
  }

  override def compute(split: Partition, context: TaskContext): Iterator[(Int, Array[Byte])] = {
    val mine = split.asInstanceOf[GangPartition]
    new GangTask(job, context).run { (job, check) =>
      val loader = new Loader(job.routes, job.inputTypes, job.tasks, split.index)
      own.zip(mine.own).foreach { case (source, parts) => parts.foreach(source.load(loader, _, context, check)) }
      val codec = new BlocksCodec(job.routes.all)
      val arrived =
        for (rdd <- packedBlocks.toSeq; part <- mine.packed.toSeq; (_, bytes) <- rdd.iterator(part, context)) yield {
          check()
          codec.decode(bytes, loader.strings)
        }
      val blocks = loader.blocks
      blocks(split.index) = blocks(split.index) ++ arrived.flatten
      (blocks, loader.strings)
    }
  }

  private def packedBlocks: Option[RDD[(Int, Array[Byte])]] = dependencies.collectFirst {
    case d: OneToOneDependency[_] if !d.rdd.isInstanceOf[AfterShuffle] => d.rdd.asInstanceOf[RDD[(Int, Array[Byte])]]
  }

  override protected def getOutputDeterministicLevel: DeterministicLevel.Value = GangStage.determinism(job.stratum)
}

/**
 * Nothing, once a shuffle has run. Spark refuses a barrier stage with an RDD that depends on more than one barrier RDD, and
 * counts those at the other end of shuffles, too: the results of other fixpoints are such. So each stands behind one of these.
 */
private final class AfterShuffle(sc: SparkContext, @transient shuffle: Dependency[_], tasks: Int)
    extends RDD[(Int, Array[Byte])](sc, Seq(shuffle)) {

  override protected def getPartitions: Array[Partition] = Array.tabulate(tasks)(GangPartition(_, Array.empty, None))

  override def compute(split: Partition, context: TaskContext): Iterator[(Int, Array[Byte])] = Iterator.empty
}

/** The map side where the gang does not read itself: packs partitions of one input for the gang's tasks. */
private[paralagg] object Packing {

  /** Rows that are packed at a time: what a map task holds is bounded. */
  private val ChunkRows = 1 << 20

  def apply(job: GangJob, source: InputSource): RDD[(Int, Array[Byte])] = {
    val input = source.input
    val ordinals = source.ordinals
    if (source.batches != null) {
      few(source.batches, job.tasks).mapPartitions { batches =>
        chunks(batches, job)((loader, check) => loader.batches(input, takeRows(batches), ordinals, check))
      }
    } else {
      few(source.rows, job.tasks).mapPartitions { rows =>
        chunks(rows, job)((loader, check) => loader.rows(input, rows.take(ChunkRows), check))
      }
    }
  }

  /** Spark's default of 200 shuffle partitions would be 200 small map tasks; as many as the gang has are enough. */
  private[paralagg] def few[T](rdd: RDD[T], tasks: Int): RDD[T] =
    if (rdd.getNumPartitions > 2 * tasks) rdd.coalesce(tasks) else rdd

  private def chunks(input: Iterator[_], job: GangJob)(
      fill: (Loader, () => Unit) => Unit): Iterator[(Int, Array[Byte])] = {
    val context = TaskContext.get()
    val codec = new BlocksCodec(job.routes.all)
    Iterator.continually(input.hasNext).takeWhile(identity).flatMap { _ =>
      val loader = new Loader(job.routes, job.inputTypes, job.tasks, context.partitionId())
      fill(loader, () => context.killTaskIfInterrupted())
      loader.blocks.iterator.zipWithIndex.map { case (blocks, target) =>
        (target, codec.encode(blocks.filter(_.rows > 0), loader.strings.strings))
      }
    }
  }

  private def takeRows(batches: Iterator[ColumnarBatch]): Iterator[ColumnarBatch] = {
    var rows = 0
    new Iterator[ColumnarBatch] {
      override def hasNext: Boolean = rows < ChunkRows && batches.hasNext
      override def next(): ColumnarBatch = {
        val batch = batches.next()
        rows += batch.numRows()
        batch
      }
    }
  }
}
