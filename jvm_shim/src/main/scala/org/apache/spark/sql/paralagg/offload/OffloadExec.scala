package org.apache.spark.sql.paralagg.offload

import org.apache.spark.PartitionIdPassthrough
import org.apache.spark.internal.Logging
import org.apache.spark.rdd.{RDD, ShuffledRDD}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.driver.{FixpointExec, FixpointOperator, RunRegistry}
import org.apache.spark.sql.paralagg.gang.Slots
import org.apache.spark.sql.paralagg.load.InputSource
import org.apache.spark.sql.paralagg.plan.{FixpointSpec, InputRead}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * The fixpoint on ranks: tasks write the inputs to files, the supervisor starts ranks when a job needs the result, and
 * the files of the result become partitions. Python makes all decisions (`OffloadSpec`).
 */
case class OffloadExec(
    children: Seq[SparkPlan],
    reads: Seq[InputRead],
    output: Seq[Attribute],
    @transient spec: FixpointSpec, // generated code of operators above may keep the plan and ship it
    partitions: Int)
    extends FixpointOperator
    with Logging {

  override def nodeName: String = "OffloadedFixpoint"
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[SparkPlan]): OffloadExec =
    copy(children = newChildren)

  override protected def compute(): RDD[ColumnarBatch] = {
    checkSlots()
    RunRegistry.beginOffload(spec)
    val run = new OffloadRun(sparkContext, spec, runMetrics, partitions, conf.ansiEnabled)
    val sources = inputs.zip(spec.program.inputs).flatMap { case (plan, input) =>
      InputSource.of(plan, input.id).map(_ -> plan.output.map(_.dataType))
    }
    val stages = new OffloadStages(sparkContext, run, sources, partitions)
    run.stages = stages
    Offloads.register(run)
    val blocks = new ShuffledRDD[Int, Array[Byte], Array[Byte]](stages.results, new PartitionIdPassthrough(partitions))
    if (run.offload.fallback && !hasSucceeded(blocks))
      FixpointExec(children, reads, output, spec, partitions).executeColumnar()
    else blocks.mapPartitionsInternal(b => ArrowFiles.batches(b.map(_._2)))
  }

  /** Checks the slots for ranks on executors, a gang: if Spark itself finds too few, it may stop the SparkContext. */
  private def checkSlots(): Unit = {
    val ranks = spec.offload.get.ranks
    if (spec.offload.get.isOnExecutors && Slots.gang(sparkContext, ranks) < ranks) {
      throw new ParalaggException(
        ErrorCodes.MpiTooManyRanks,
        s"$ranks ranks need as many slots at the same time, but there are ${Slots.available(sparkContext)}.",
        "ask for fewer by spark.paralagg.mpi.ranks.")
    }
  }

  /** Runs the ranks now, while a fallback is still possible. Errors of the query itself are thrown. */
  private def hasSucceeded(blocks: RDD[_]): Boolean =
    try {
      sparkContext.runJob(blocks, (_: Iterator[_]) => (), Seq(0))
      true
    } catch {
      case OfRanks(e) =>
        logWarning(
          s"${spec.program.name} falls back to the Spark engine (spark.paralagg.mpi.fallback=true): ${e.getMessage}")
        RunRegistry.fellBack(spec, e.getMessage)
        false
    }
}

/** An error of the ranks, or one of Spark around it: a failed job throws its task's error itself from Spark 4.0 on. */
private object OfRanks {
  def unapply(error: Throwable): Option[ParalaggException] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).collectFirst {
      case e: ParalaggException if ErrorCodes.OfRanks(e.getCondition) => e
    }
}
