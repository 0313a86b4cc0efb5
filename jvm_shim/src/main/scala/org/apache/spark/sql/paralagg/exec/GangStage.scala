package org.apache.spark.sql.paralagg.exec

import org.apache.spark.{OneToOneDependency, Partition, SparkContext, TaskContext}
import org.apache.spark.rdd.{DeterministicLevel, RDD, ShuffledRDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution._
import org.apache.spark.sql.types.{DoubleType, FloatType}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Rows of one input: by columns where the plan gives columns, else by rows. */
case class InputSource(input: Int, rows: RDD[InternalRow], batches: RDD[ColumnarBatch], ordinals: Array[Int]) {
  def rdd: RDD[_] = if (batches != null) batches else rows

  def load(loader: Loader, partition: Partition, context: TaskContext, check: () => Unit): Unit =
    if (batches != null) loader.batches(input, batches.iterator(partition, context), ordinals, check)
    else loader.rows(input, rows.iterator(partition, context), check)
}

object InputSource {

  /** Looks through the transition to rows, which costs more than the scan, and through projections of plain columns. */
  def of(plan: SparkPlan, input: Int): InputSource = plan match {
    case RowToColumnarExec(child) => of(child, input) // Spark adds it because the fixpoint's own output is columnar
    case _ => ofRowsOrBatches(plan, input)
  }

  private def ofRowsOrBatches(plan: SparkPlan, input: Int): InputSource = columnar(plan) match {
    case Some(source) =>
      val ordinals = plan.output.map(a => source.output.indexWhere(_.exprId == a.exprId)).toArray
      InputSource(input, null, source.executeColumnar(), ordinals)
    case None => InputSource(input, plan.execute(), null, null)
  }

  private def columnar(plan: SparkPlan): Option[SparkPlan] = plan match {
    case WholeStageCodegenExec(child) => columnar(child)
    case InputAdapter(child) => columnar(child)
    case ProjectExec(list, child) if list.forall(_.isInstanceOf[Attribute]) => columnar(child)
    case ColumnarToRowExec(child) => columnar(child)
    case p if p.supportsColumnar => Some(p)
    case _ => None
  }
}

/** The gang-scheduled stage: an RDD of (partition of the result, block). */
object GangStage {

  /**
   * Under `local[N]` all tasks share this JVM: the gang reads an input itself unless a shuffle lies below it. All else is
   * packed by a map side, for the gang to read as shuffle blocks.
   */
  def apply(sc: SparkContext, job: GangJob, sources: Seq[InputSource]): RDD[(Int, Array[Byte])] = {
    val (own, others) = sources.partition(s => sc.isLocal && !hasShuffle(s.rdd))
    val packed =
      if (others.isEmpty) None
      else {
        Some(new ShuffledRDD[Int, Array[Byte], Array[Byte]](
            sc.union(others.map(Packing(job, _))), new IndexPartitioner(job.tasks)))
      }
    new GangRDD(sc, job.copy(direct = own.nonEmpty), own, packed).barrier().mapPartitions(identity(_))
  }

  /** A gang that reads its inputs itself can not have a shuffle below it: nobody could make lost output anew. */
  private def hasShuffle(rdd: RDD[_]): Boolean = rdd.dependencies.exists {
    case _: org.apache.spark.ShuffleDependency[_, _, _] => true
    case d => hasShuffle(d.rdd)
  }

  /** Sums of floating point numbers depend on the order of rows: a retried stage must not be mixed with a former run. */
  private[exec] def determinism(job: GangJob): DeterministicLevel.Value = {
    val sums = job.stratum.relations.flatMap(_.dependents).filter(_.aggregator == "sum")
    if (sums.exists(d => d.column.dataType == DoubleType || d.column.dataType == FloatType))
      DeterministicLevel.INDETERMINATE
    else DeterministicLevel.UNORDERED
  }
}

/** A gang task's partition holds the partitions of the inputs that it reads itself, and the one that was packed for it. */
private case class GangPartition(index: Int, own: Array[Array[Partition]], packed: Option[Partition]) extends Partition

/**
 * The gang. Inputs that it reads itself (`own`) are no declared dependencies, so a barrier stage takes any number of their
 * partitions; it hands their words over in memory.
 */
private final class GangRDD(
    sc: SparkContext, job: GangJob, own: Seq[InputSource], @transient packed: Option[RDD[(Int, Array[Byte])]])
    extends RDD[(Int, Array[Byte])](sc, packed.toSeq.map(new OneToOneDependency(_))) {

  override protected def getPartitions: Array[Partition] = Array.tabulate(job.tasks) { t =>
    GangPartition(
      t, own.map(_.rdd.partitions.filter(_.index % job.tasks == t)).toArray, packed.map(_.partitions(t)))
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
      loader.blocks(split.index) = loader.blocks(split.index) ++ arrived.flatten
      (loader.blocks, loader.strings)
    }
  }

  private def packedBlocks: Option[RDD[(Int, Array[Byte])]] =
    dependencies.headOption.map(_.rdd.asInstanceOf[RDD[(Int, Array[Byte])]])

  override protected def getOutputDeterministicLevel: DeterministicLevel.Value = GangStage.determinism(job)
}

/** The map side where the gang does not read itself: packs partitions of one input for the gang's tasks. */
private object Packing {

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
  private def few[T](rdd: RDD[T], tasks: Int): RDD[T] =
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
