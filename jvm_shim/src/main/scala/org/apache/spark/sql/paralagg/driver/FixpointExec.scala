package org.apache.spark.sql.paralagg.driver

import java.util.UUID

import scala.util.Try

import org.apache.spark.PartitionIdPassthrough
import org.apache.spark.rdd.{PartitionPruningRDD, RDD, ShuffledRDD}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.{SparkPlan, SQLExecution}
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException, StaticConfs}
import org.apache.spark.sql.paralagg.gang.Slots
import org.apache.spark.sql.paralagg.load.InputSource
import org.apache.spark.sql.paralagg.loop.CheckpointConf
import org.apache.spark.sql.paralagg.plan.{FixpointSpec, InputRead, KeptRuns, KeptSpec}
import org.apache.spark.sql.paralagg.state.KeptState
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * The fixpoint on Spark: a gang-scheduled stage that loops, and a shuffle of its results. Spark allows no gang in one
 * stage with `take`, `coalesce` or `union`, and shuffle output survives as usual.
 */
case class FixpointExec(
    children: Seq[SparkPlan],
    reads: Seq[InputRead],
    output: Seq[Attribute],
    @transient spec: FixpointSpec, // generated code of operators above may keep the plan and ship it
    partitions: Int)
    extends FixpointOperator {

  override def nodeName: String = "Fixpoint"
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[SparkPlan]): FixpointExec =
    copy(children = newChildren)

  override protected def compute(): RDD[ColumnarBatch] = {
    val own = spec.program.relations.indexOf(relation)
    val together = spec.together.map(name => spec.program.relations.indexWhere(_.name == name))
    val resultRelation = relation // the closure holds it without the operator
    val hasFlag = spec.kept.exists(_.falls.isDefined)
    val blocks: RDD[(Int, Array[Byte])] =
      if (together.isEmpty) run(Seq(own))
      else {
        val key = (sparkContext, children.map(SharedResults.canonical), spec.planJson, partitions, conf.ansiEnabled)
        val query = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
        val all = spec.analysis.kept.getOrRun(key, spec, query)(run(together))
        PartitionPruningRDD.create(all, _ / partitions == together.indexOf(own))
      }
    blocks.mapPartitionsInternal { blocks =>
      val results = new ResultBlocks(resultRelation, hasFlag)
      blocks.flatMap { case (_, bytes) => results.read(bytes) }
    }
  }

  /** Begins a run. Returns the blocks of relations `outputs`: of each the partitions, one relation after the other. */
  private def run(outputs: Seq[Int]): KeptRuns.Blocks = {
    val tasks = Slots.gang(sparkContext, partitions)
    Coordinator.of(sparkContext)
    spec.kept.flatMap(_.take).foreach(KeptStates.check(sparkContext, _, tasks))
    // First, since these may fail (a broadcast timeout, a fixpoint below): then no run has begun.
    val loaded = spec.program.inputs.toSeq.map(_.id).zip(inputs)
    val indexes = keptIndexes(loaded, tasks)
    val found = indexes.flatMap(KeptIndexes.find(sparkContext, _, tasks))
    val (indexed, others) = loaded.partition(i => found.isDefined && isIndexed(i._1))
    val Seq(late, sources) = Seq(indexed, others).map(i => InputSource.shared(i.map(_._2), i.map(_._1)))
    val checkpoint = StaticConfs.get(StaticConfs.CheckpointDir).map { root =>
      CheckpointConf(s"$root/${sparkContext.applicationId}-${FixpointExec.Driver}",
        number("spark.paralagg.checkpoint.interval", 10, 1))
    }
    val oneTaskRows = number("spark.paralagg.oneTask.maxRows", 1 << 20, 0)
    val executionId = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    val marker = sparkContext.broadcast(Array.emptyByteArray) // its id is the name space of the run's blocks
    val run = RunRegistry.begin(spec, tasks, sparkContext, executionId, runMetrics)
    val stage =
      try {
        val program = if (found.isDefined) spec.appendingStrings.program else spec.program
        val kept = spec.kept.orElse(indexes.map(key =>
            KeptSpec(found, KeptIndexes.leave(sparkContext, key, run.id, found), KeptSpec.Other)))
        val job = GangJob(
          run.id, program, outputs.toArray, tasks, partitions, conf.ansiEnabled, marker.id, direct = false,
          checkpoint, oneTaskRows, number("spark.paralagg.heavyParts", 8, 0).toInt,
          number("spark.paralagg.rollOverRows", 4000000, 0), kept)
        val stage = GangStage(sparkContext, job, sources, late)
        RunEnd.watch(sparkContext, run, marker, checkpoint.map(_.run(run.id)), stage.id)
        stage
      } catch {
        case e: Throwable =>
          RunRegistry.end(run.id)
          marker.destroy()
          throw e
      }
    new ShuffledRDD[Int, Array[Byte], Array[Byte]](stage, new PartitionIdPassthrough(partitions * outputs.length))
  }

  /** Tests whether an input is loaded into static indexes alone. */
  private def isIndexed(input: Int): Boolean = !spec.program.relations.exists(_.base == input)

  /** Returns what the indexes of the run are made of, if it may leave them for other queries. */
  private def keptIndexes(loaded: Seq[(Int, SparkPlan)], tasks: Int): Option[AnyRef] =
    if (spec.kept.isDefined || !truth(FixpointExec.KeepIndexes) || !spec.program.keepsIndexes ||
      StaticConfs.get(StaticConfs.CheckpointDir).isDefined) None // a checkpoint has ids, which these indexes do not fix
    else
      KnownRows.of(loaded.collect { case (id, plan) if isIndexed(id) => plan }).map { rows =>
        (spec.meaning, spec.stratum, rows, tasks, conf.getAllConfs.filter(_._1.startsWith("spark.sql.")))
      }

  private def truth(key: String): Boolean = conf.getConfString(key, "false").toLowerCase match {
    case "true" => true
    case "false" => false
    case text => throw new ParalaggException(
        ErrorCodes.BadConf, s"$key is '$text', which is not true or false.", "use true or false; the default is false.")
  }

  /** Returns the number of a conf, which `pyspark_paralagg/session/conf.py` describes. */
  private def number(key: String, default: Long, least: Long): Long = {
    val text = conf.getConfString(key, default.toString)
    Try(text.toLong).toOption.filter(_ >= least).getOrElse(throw new ParalaggException(
        ErrorCodes.BadConf, s"$key is '$text', which is not a whole number from $least on.",
        s"use a whole number from $least on; the default is $default."))
  }
}

object FixpointExec {
  private val KeepIndexes = "spark.paralagg.keepIndexes"

  /** Tells drivers apart whose applications have the same id, as those that two masters start in one second have. */
  private val Driver = UUID.randomUUID().toString
}
