package org.apache.spark.sql.paralagg.exec

import org.apache.spark.Partitioner
import org.apache.spark.rdd.{RDD, ShuffledRDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning, Partitioning, SinglePartition, UnknownPartitioning
}
import org.apache.spark.sql.execution.{SparkPlan, SQLExecution}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.paralagg.plan.FixpointSpec
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * The fixpoint as a physical operator: a gang-scheduled stage that loops, and a shuffle that its results leave through
 * (a gang may not stand under `take`, `coalesce` or `union` in one stage, and shuffle output is as safe as any).
 *
 * Rows leave already distributed by the relation's distribution columns with Catalyst's own hash, and `outputPartitioning`
 * says so: a join or groupBy on the keys afterwards shuffles nothing.
 */
case class FixpointExec(
    inputs: Seq[SparkPlan],
    output: Seq[Attribute],
    @transient spec: FixpointSpec, // generated code of operators above may keep the plan and ship it
    partitions: Int)
    extends SparkPlan {

  override def children: Seq[SparkPlan] = inputs
  override def supportsColumnar: Boolean = true
  override def nodeName: String = "Fixpoint"

  private def relation = spec.program.relation(spec.relation)

  override def outputPartitioning: Partitioning =
    if (partitions == 1) SinglePartition
    else if (relation.distributeBy.isEmpty) UnknownPartitioning(partitions)
    else HashPartitioning(relation.distributeBy.map(output).toSeq, partitions)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "iterations" -> SQLMetrics.createMetric(sparkContext, "iterations"),
    "delta" -> SQLMetrics.createMetric(sparkContext, "rows changed by the last iteration"),
    "tuples" -> SQLMetrics.createMetric(sparkContext, "rows of the recursive relations"))

  override def simpleString(maxFields: Int): String = {
    val dependents = relation.dependents.map(d => s"${d.aggregator}(${d.column.name})")
    s"Fixpoint $spec keys=${relation.keys.map(_.name).mkString("[", ", ", "]")} aggs=${dependents.mkString("[", ", ", "]")}" +
      s" partitions=$partitions${if (spec.reason.isEmpty) "" else s" (${spec.reason})"}"
  }

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException("FixpointExec gives column batches; Spark turns them into rows")

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = result

  /** One run for one operator, however often Spark asks for its RDD. */
  @transient private lazy val result: RDD[ColumnarBatch] = {
    val tasks = Slots.gang(sparkContext, partitions)
    Coordinator.of(sparkContext)
    val executionId = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    val run = RunRegistry.begin(spec, tasks, sparkContext, executionId, metrics)
    val marker = sparkContext.broadcast(Array.emptyByteArray) // its id is the name space of the run's blocks
    val checkpoint = Option(conf.getConfString("spark.paralagg.checkpoint.dir", null)).map { root =>
      val interval = conf.getConfString("spark.paralagg.checkpoint.interval", "10").toInt
      CheckpointConf(s"$root/${sparkContext.applicationId}", interval)
    }
    val job = GangJob(
      run.id,
      spec.program,
      spec.program.relations.indexOf(relation),
      tasks,
      partitions,
      conf.ansiEnabled,
      marker.id,
      direct = false,
      checkpoint)
    val sources = inputs.zip(spec.program.inputs).map { case (plan, input) => InputSource.of(plan, input.id) }
    val gang = GangStage(sparkContext, job, sources)
    RunEnd.watch(sparkContext, run, marker, checkpoint.map(_.run(run.id)), gang.id)
    val codec = relation
    new ShuffledRDD[Int, Array[Byte], Array[Byte]](gang, new IndexPartitioner(partitions)).mapPartitionsInternal {
      blocks =>
        val results = new ResultBlocks(codec)
        blocks.flatMap { case (_, bytes) => results.read(bytes) }
    }
  }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[SparkPlan]): SparkPlan =
    copy(inputs = newChildren)
}

/** Keys are partition numbers already. */
final class IndexPartitioner(override val numPartitions: Int) extends Partitioner {
  override def getPartition(key: Any): Int = key.asInstanceOf[Int]
}
