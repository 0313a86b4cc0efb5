package org.apache.spark.sql.paralagg.driver

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, PlanExpression}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.TableCacheQueryStageExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}

/**
 * The leaf of a plan whose rows are known: equal ones have the same rows. `rows` are the files of a scan, with their
 * times, and all that decides how they are read; so a new version of a table, a folder with another file and another
 * deletion vector of Delta are other rows. Of a cached table it is the number of the cached data.
 */
private[paralagg] final case class KnownRows(output: Seq[Attribute], rows: RowsFacts) extends LeafExecNode {
  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException("it only stands for rows, to compare plans")
}

/** What decides which rows a leaf has. Spark does not look for expressions in it, as it does in a `Seq`. */
private[paralagg] final case class RowsFacts(facts: Any*)

private[paralagg] object KnownRows {

  /** Returns what plans of the same rows have in common; None if a plan reads anything else, or has a shuffle. */
  def of(plans: Seq[SparkPlan]): Option[Seq[SparkPlan]] = {
    val known = plans.map(over(_).map(_.canonicalized))
    if (known.contains(None)) None else Some(known.flatten)
  }

  private def over(plan: SparkPlan): Option[SparkPlan] = plan match {
    case s: TableCacheQueryStageExec => over(s.plan)
    case _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec | _: RowToColumnarExec =>
      over(plan.children.head)
    case _: ProjectExec | _: FilterExec | _: UnionExec if plan.expressions.forall(isFixed) =>
      val children = plan.children.map(over)
      if (children.contains(None)) None else Some(plan.withNewChildren(children.flatten))
    case _: RangeExec | _: LocalTableScanExec => Some(plan)
    case s: InMemoryTableScanExec =>
      val columns = s.attributes.map(a => s.relation.output.indexWhere(_.exprId == a.exprId))
      Some(KnownRows(s.output, RowsFacts(s.relation.cacheBuilder.cachedColumnBuffers.id, columns)))
    case s: FileSourceScanExec if (s.partitionFilters ++ s.dataFilters).forall(isFixed) => scanned(s)
    case _ => None
  }

  private def scanned(s: FileSourceScanExec): Option[SparkPlan] = {
    val parts = s.inputRDD.partitions
    val files = parts.collect { case p: FilePartition => p }.flatMap(_.files)
    val filters = (s.partitionFilters ++ s.dataFilters).map(_.transform {
      case a: Attribute => UnresolvedAttribute(Seq(a.name))
    })
    val names = s.output.map(_.name)
    def facts = RowsFacts(
      s.relation.fileFormat, s.relation.options, s.requiredSchema, names, filters, files.toSeq.map(known(s, _)))
    if (parts.forall(_.isInstanceOf[FilePartition])) Some(KnownRows(s.output, facts)) else None
  }

  private def known(s: FileSourceScanExec, f: PartitionedFile): Any = (
    f.filePath.toString, f.start, f.length, f.fileSize, f.modificationTime,
    f.partitionValues.toSeq(s.relation.partitionSchema), f.otherConstantMetadataColumnValues)

  /** Tests whether an expression is the same for the same row, in each query. */
  private def isFixed(e: Expression): Boolean = e.deterministic && !e.exists(_.isInstanceOf[PlanExpression[_]])
}
