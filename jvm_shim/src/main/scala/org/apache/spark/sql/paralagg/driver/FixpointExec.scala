package org.apache.spark.sql.paralagg.driver

import org.apache.spark.Partitioner
import org.apache.spark.rdd.{RDD, ShuffledRDD}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.{SparkPlan, SQLExecution}
import org.apache.spark.sql.paralagg.StaticConfs
import org.apache.spark.sql.paralagg.gang.Slots
import org.apache.spark.sql.paralagg.load.InputSource
import org.apache.spark.sql.paralagg.loop.CheckpointConf
import org.apache.spark.sql.paralagg.plan.FixpointSpec
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * The fixpoint on the gang: a gang-scheduled stage that loops, and a shuffle that its results leave through (a gang may
 * not stand under `take`, `coalesce` or `union` in one stage, and shuffle output is as safe as any).
 */
case class FixpointExec(
    inputs: Seq[SparkPlan],
    output: Seq[Attribute],
    @transient spec: FixpointSpec, // generated code of operators above may keep the plan and ship it
    partitions: Int)
    extends FixpointOperator {

  override def nodeName: String = "Fixpoint"
  override def withInputs(inputs: Seq[SparkPlan]): FixpointExec = copy(inputs = inputs)

  override protected def compute(): RDD[ColumnarBatch] = {
    val tasks = Slots.gang(sparkContext, partitions)
    RunRegistry.coordinator(sparkContext)
    // First, since it may fail (a broadcast that takes too long, a fixpoint below): then no run has begun.
    val sources = inputs.zip(spec.program.inputs).map { case (plan, input) => InputSource.of(plan, input.id) }
    val executionId = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    val run = RunRegistry.begin(spec, tasks, sparkContext, executionId, runMetrics)
    val marker = sparkContext.broadcast(Array.emptyByteArray) // its id is the name space of the run's blocks
    val checkpoint = StaticConfs.get(StaticConfs.CheckpointDir).map { root =>
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
    val gang = GangStage(sparkContext, job, sources)
    RunEnd.watch(sparkContext, run, marker, checkpoint.map(_.run(run.id)), gang.id)
    val codec = relation
    new ShuffledRDD[Int, Array[Byte], Array[Byte]](gang, new IndexPartitioner(partitions)).mapPartitionsInternal {
      blocks =>
        val results = new ResultBlocks(codec)
        blocks.flatMap { case (_, bytes) => results.read(bytes) }
    }
  }
}

/** Keys are partition numbers already. */
final class IndexPartitioner(override val numPartitions: Int) extends Partitioner {
  override def getPartition(key: Any): Int = key.asInstanceOf[Int]
}
