package org.apache.spark.sql.paralagg.driver

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning, Partitioning, SinglePartition, UnknownPartitioning
}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.sql.paralagg.plan.{FixpointSpec, RelationSpec}

/**
 * A fixpoint as a physical operator, whoever computes it.
 *
 * Rows leave already distributed by the relation's distribution columns with Catalyst's own hash, and `outputPartitioning`
 * says so: a join or groupBy on the keys afterwards shuffles nothing.
 */
trait FixpointOperator extends SparkPlan {
  def inputs: Seq[SparkPlan]
  def spec: FixpointSpec
  def partitions: Int
  def withInputs(inputs: Seq[SparkPlan]): FixpointOperator

  /** The result's batches. It is asked for once a query, however often Spark asks, and for however many equal operators. */
  protected def compute(): RDD[ColumnarBatch]

  @transient private lazy val result: RDD[ColumnarBatch] = {
    val rows = longMetric("numOutputRows")
    SharedResults.of(sparkContext, this)(compute()).mapPartitionsInternal(_.map { batch =>
      rows += batch.numRows()
      batch
    })
  }

  override def children: Seq[SparkPlan] = inputs
  override def supportsColumnar: Boolean = true

  protected def relation: RelationSpec = spec.program.relation(spec.relation)

  override def outputPartitioning: Partitioning =
    if (partitions == 1) SinglePartition
    else if (relation.distributeBy.isEmpty) UnknownPartitioning(partitions)
    else HashPartitioning(relation.distributeBy.map(output).toSeq, partitions)

  /** What a run tells of itself; `numOutputRows` is what the UI writes on the arrow to the next operator. */
  protected lazy val runMetrics: Map[String, SQLMetric] = Map(
    "iterations" -> SQLMetrics.createMetric(sparkContext, "iterations"),
    "delta" -> SQLMetrics.createMetric(sparkContext, "rows changed by the last iteration"),
    "tuples" -> SQLMetrics.createMetric(sparkContext, "rows of the recursive relations"),
    "bytes" -> SQLMetrics.createMetric(sparkContext, "bytes exchanged"), // a size would show each post's share
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

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[SparkPlan]): SparkPlan =
    withInputs(newChildren)
}
