package org.apache.spark.sql.paralagg.load

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.sql.vectorized.ColumnarBatch

/** An input of a source: its columns are the columns `ordinals` of the source's batches, or all of its rows. */
case class InputUse(input: Int, ordinals: Array[Int])

/** The rows of one input, or of several that scan the same: column batches if the plan is columnar, else rows. */
case class InputSource(
    uses: Seq[InputUse],
    rows: RDD[InternalRow],
    batches: RDD[ColumnarBatch],
    @transient private val canSplit: Boolean) {
  def rdd: RDD[_] = if (batches != null) batches else rows

  def load(loader: Loader, partition: Partition, context: TaskContext, check: () => Unit): Unit =
    if (batches != null) loader.readBatches(uses, batches.iterator(partition, context), check)
    else loader.readRows(uses.head.input, rows.iterator(partition, context), check)

  def shares(tasks: Int): Array[Array[Partition]] = InputSource.shares(rdd, canSplit, tasks)
}

object InputSource {
  private val MinSplitBytes = 1L << 20

  /** Returns the partitions of `rows` for each task: of files if `plan` only reads and maps rows of one scan. */
  def shares(plan: SparkPlan, rows: RDD[_], tasks: Int): Array[Array[Partition]] = {
    def scans(p: SparkPlan): Boolean =
      if (p.children.isEmpty) canSplit(p) else p.children.length == 1 && p.children.forall(scans)
    shares(rows, scans(plan), tasks)
  }

  /**
   * Returns the partitions of each task that reads `rdd` itself. Files are split again, into equal shares: Spark
   * fills one partition after another, but all tasks of a gang wait for the slowest.
   */
  private def shares(rdd: RDD[_], canSplit: Boolean, tasks: Int): Array[Array[Partition]] = {
    val parts = rdd.partitions
    val files = parts.collect { case p: FilePartition => p }.flatMap(_.files)
    val bytes = files.map(_.length).sum
    if (!canSplit || bytes < MinSplitBytes) Array.tabulate(tasks)(t => parts.filter(_.index % tasks == t))
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

  /** Returns the sources of `inputs`. A source that has all columns of another one is read for both. */
  def shared(plans: Seq[SparkPlan], inputs: Seq[Int]): Seq[InputSource] = {
    val columns = plans.map(Columns.of)
    val widest = columns.flatten.flatten.map(_.source).sortBy(-_.output.length).foldLeft(Vector.empty[SparkPlan]) {
      (kept, source) => if (kept.exists(reads(_, source))) kept else kept :+ source
    }
    val scans = widest.map { scan =>
      val uses = inputs.zip(columns).collect {
        case (input, Some(parts)) =>
          parts.filter(c => widest.find(reads(_, c.source)).contains(scan)).map(c =>
            InputUse(input, c.ordinalsIn(scan)))
      }.flatten
      InputSource(uses, null, scan.executeColumnar(), canSplit(scan))
    }
    scans ++ plans.indices.filter(columns(_).isEmpty).map(i => ofRows(plans(i), inputs(i)))
  }

  /** Returns the sources of one input, several if it is a union. Each has one use. */
  def of(plan: SparkPlan, input: Int): Seq[InputSource] =
    shared(Seq(plan), Seq(input)).flatMap(s => s.uses.map(use => s.copy(uses = Seq(use))))

  private def ofRows(plan: SparkPlan, input: Int): InputSource =
    InputSource(Seq(InputUse(input, null)), plan.execute(), null, canSplit = false)

  /** Tests whether `scan` reads all that `other` reads: columns of the same files, without filters. */
  private def reads(scan: SparkPlan, other: SparkPlan): Boolean = (scan eq other) || ((scan, other) match {
    case (s: FileSourceScanExec, o: FileSourceScanExec) =>
      s.relation == o.relation && Seq(s, o).forall(f => f.dataFilters.isEmpty && f.partitionFilters.isEmpty) &&
      o.requiredSchema.fields.toSet.subsetOf(s.requiredSchema.fields.toSet) &&
      o.output.forall(a => s.output.count(_.name == a.name) == 1)
    case _ => false
  })

  private def canSplit(plan: SparkPlan): Boolean = plan match {
    case scan: FileSourceScanExec =>
      val files = scan.relation
      files.location.rootPaths.nonEmpty && files.location.rootPaths.forall(
        files.fileFormat.isSplitable(files.sparkSession, files.options, _))
    case _ => false
  }
}

/** The column batches below a plan that only renames, repeats and reorders their columns: `columns`, of `source`. */
private final case class Columns(source: SparkPlan, columns: Seq[Attribute]) {

  /** Returns the positions of the columns in `scan`, which is `source` or reads all that it reads. */
  def ordinalsIn(scan: SparkPlan): Array[Int] = columns.map { c =>
    scan.output.indexWhere(a => if (scan eq source) a.exprId == c.exprId else a.name == c.name)
  }.toArray
}

private object Columns {

  /** Returns the column batches that make up the plan's rows; skips the transition to rows, which costs more than the scan. */
  def of(plan: SparkPlan): Option[Seq[Columns]] = plan match {
    // Spark adds the first one because the fixpoint's output is columnar.
    case _: RowToColumnarExec | _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec =>
      of(plan.children.head)
    case ProjectExec(list, child) =>
      val names = list.collect {
        case a: Attribute => a
        case Alias(a: Attribute, _) => a
      }
      if (names.length < list.length) None
      else {
        val positions = names.map(a => child.output.indexWhere(_.exprId == a.exprId))
        of(child).map(_.map(c => Columns(c.source, positions.map(c.columns(_)))))
      }
    case UnionExec(children) =>
      val parts = children.map(of)
      if (parts.contains(None)) None else Some(parts.flatten.flatten)
    case p if p.supportsColumnar => Some(Seq(Columns(p, p.output)))
    case _ => None
  }
}
