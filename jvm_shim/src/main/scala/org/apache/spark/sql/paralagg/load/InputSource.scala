package org.apache.spark.sql.paralagg.load

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.sql.vectorized.ColumnarBatch

/** The rows of one input: column batches if the plan is columnar, else rows. */
case class InputSource(
    input: Int,
    rows: RDD[InternalRow],
    batches: RDD[ColumnarBatch],
    ordinals: Array[Int],
    @transient private val canSplit: Boolean) {
  def rdd: RDD[_] = if (batches != null) batches else rows

  def load(loader: Loader, partition: Partition, context: TaskContext, check: () => Unit): Unit =
    if (batches != null) loader.readBatches(input, batches.iterator(partition, context), ordinals, check)
    else loader.readRows(input, rows.iterator(partition, context), check)

  /**
   * Returns the partitions of each task that reads the input itself. Files are split again, into equal shares: Spark
   * fills one partition after another, but all tasks of a gang wait for the slowest.
   */
  def shares(tasks: Int): Array[Array[Partition]] = {
    val parts = rdd.partitions
    val files = parts.collect { case p: FilePartition => p }.flatMap(_.files)
    val bytes = files.map(_.length).sum
    if (!canSplit || bytes < InputSource.MinSplitBytes) Array.tabulate(tasks)(t => parts.filter(_.index % tasks == t))
    else {
      val starts = files.scanLeft(0L)(_ + _.length)
      Array.tabulate(tasks) { t =>
        val (from, until) = (bytes * t / tasks, bytes * (t + 1) / tasks)
        val pieces = files.zip(starts).flatMap { case (f, at) =>
          val (low, high) = (math.max(from, at), math.min(until, at + f.length))
          if (low < high) Some(f.copy(start = f.start + low - at, length = high - low)) else None
        }
        Array[Partition](FilePartition(t, pieces))
      }
    }
  }
}

object InputSource {
  private val MinSplitBytes = 1L << 20

  /** Skips the transition to rows, which costs more than the scan, and projections of plain columns. */
  def of(plan: SparkPlan, input: Int): InputSource = columnar(plan) match {
    case Some(source) =>
      val ordinals = plan.output.map(a => source.output.indexWhere(_.exprId == a.exprId)).toArray
      InputSource(input, null, source.executeColumnar(), ordinals, canSplit(source))
    case None => InputSource(input, plan.execute(), null, null, canSplit = false)
  }

  private def columnar(plan: SparkPlan): Option[SparkPlan] = plan match {
    // Spark adds the first one because the fixpoint's output is columnar.
    case _: RowToColumnarExec | _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec =>
      columnar(plan.children.head)
    case ProjectExec(list, child) if list.forall(_.isInstanceOf[Attribute]) => columnar(child)
    case p if p.supportsColumnar => Some(p)
    case _ => None
  }

  private def canSplit(plan: SparkPlan): Boolean = plan match {
    case scan: FileSourceScanExec =>
      val files = scan.relation
      files.location.rootPaths.nonEmpty && files.location.rootPaths.forall(
        files.fileFormat.isSplitable(files.sparkSession, files.options, _))
    case _ => false
  }
}
