package org.apache.spark.sql.paralagg.driver

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.IsNotNull
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning, Partitioning, SinglePartition, UnknownPartitioning
}
import org.apache.spark.sql.execution.{ColumnarToRowExec, FilterExec, ProjectExec, RowToColumnarExec, SparkPlan}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.sql.paralagg.plan.{FixpointSpec, InputRead, RelationSpec}

/**
 * A fixpoint as a physical operator, on Spark or on ranks.
 *
 * The rows of the result are distributed by the relation's distribution columns with Catalyst's hash, and
 * `outputPartitioning` reports it: a later join or groupBy on the keys needs no shuffle.
 */
trait FixpointOperator extends SparkPlan {
  def reads: Seq[InputRead]
  def spec: FixpointSpec
  def partitions: Int

  /** Returns the result's batches. It is called once a query for all equal operators. */
  protected def compute(): RDD[ColumnarBatch]

  @transient private lazy val result: RDD[ColumnarBatch] = {
    val rows = longMetric("numOutputRows")
    SharedResults.getOrCompute(sparkContext, this)(compute()).mapPartitionsInternal(_.map { batch =>
      rows += batch.numRows()
      batch
    })
  }

  /** The plan of each input of the stratum: a child, or columns and rows of one. */
  protected def inputs: Seq[SparkPlan] = reads.map { read =>
    val child = children(read.child)
    val columns = read.columns.map(child.output)
    def rows = child match {
      case RowToColumnarExec(rows) => rows // Spark has added it because the fixpoint's output is columnar
      case batches if batches.supportsColumnar => ColumnarToRowExec(batches)
      case rows => rows
    }
    val filtered = read.where.fold(child)(w => FilterExec(IsNotNull(child.output(w)), rows))
    if (columns == child.output) filtered else ProjectExec(columns, filtered)
  }

  override def supportsColumnar: Boolean = true

  protected def relation: RelationSpec = spec.program.relation(spec.relation)

  override def outputPartitioning: Partitioning =
    if (partitions == 1) SinglePartition
    else if (relation.distributeBy.isEmpty) UnknownPartitioning(partitions)
    else HashPartitioning(relation.distributeBy.map(output).toSeq, partitions)

  /** The metrics of a run; the UI shows `numOutputRows` on the arrow to the next operator. */
  protected lazy val runMetrics: Map[String, SQLMetric] = Map(
    "iterations" -> SQLMetrics.createMetric(sparkContext, "iterations"),
    "delta" -> SQLMetrics.createMetric(sparkContext, "rows changed by the last iteration"),
    "tuples" -> SQLMetrics.createMetric(sparkContext, "rows of the recursive relations"),
    "bytes" -> SQLMetrics.createMetric(sparkContext, "bytes exchanged"), // a size metric would show each post's share
    "balance" -> SQLMetrics.createMetric(sparkContext, "changed rows of the heaviest task, % of the average"),
    "load" -> SQLMetrics.createTimingMetric(sparkContext, "time to load"),
    "loop" -> SQLMetrics.createTimingMetric(sparkContext, "time to iterate"),
    "store" -> SQLMetrics.createTimingMetric(sparkContext, "time to store"))

  override lazy val metrics: Map[String, SQLMetric] =
    runMetrics + ("numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"))

  override def simpleString(maxFields: Int): String = {
    val dependents = relation.dependents.map(d => s"${d.aggregator}(${d.column.name})")
    s"$nodeName $spec keys=${relation.keys.map(_.name).mkString("[", ", ", "]")} aggs=${dependents.mkString("[", ", ", "]")}" +
      s" partitions=$partitions${if (spec.reason.isEmpty) "" else s" (${spec.reason})"}"
  }

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException(s"$nodeName gives column batches; Spark turns them into rows")

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = result
}
