package org.apache.spark.sql.paralagg

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Union}
import org.apache.spark.sql.{classic, SparkSession}
import org.apache.spark.sql.execution.{FilterExec, SparkPlan, SparkStrategy, UnionExec}
import org.apache.spark.sql.paralagg.driver.{FixpointExec, GangExchange, RoutesExec, SharedRowsExec}
import org.apache.spark.sql.paralagg.gang.Slots
import org.apache.spark.sql.paralagg.offload.OffloadExec
import org.apache.spark.sql.paralagg.plan.{RecursiveAggregate, RecursiveReference, Routes, SharedRows}

/**
 * The planner strategy for RecursiveAggregate: FixpointExec, or OffloadExec if Python has decided for ranks. It sets
 * the number of partitions, the smaller of the shuffle partitions and the slots. Routes becomes RoutesExec.
 */
object FixpointStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case RecursiveAggregate(children, reads, output, spec) if spec.offload.isDefined =>
      val partitions = Slots.likely(SparkSession.active.sparkContext, plan.conf.numShufflePartitions)
      OffloadExec(children.map(planLater), reads, output, spec, partitions) :: Nil
    case RecursiveAggregate(children, reads, output, spec) =>
      val session = SparkSession.active.asInstanceOf[classic.SparkSession]
      val partitions = Slots.gang(session.sparkContext, plan.conf.numShufflePartitions)
      val planned = children.map(c => GangExchange.plan(c, session, partitions).getOrElse(planLater(c)))
      FixpointExec(planned, reads, output, spec, partitions) :: Nil
    case SharedRows(output, shared) => SharedRowsExec(output, shared) :: Nil
    case Routes(spec, output, child) => RoutesExec(spec, output, planLater(child)) :: Nil
    // Spark's union keeps the partitioning that its children share for rows only: of columnar children it concatenates
    // the partitions, and an aggregate above sees a key twice. A filter, even one that keeps every row, gives rows.
    case u: Union if u.children.exists(_.isInstanceOf[RecursiveAggregate]) =>
      UnionExec(u.children.map {
        case r: RecursiveAggregate => FilterExec(Literal.TrueLiteral, planLater(r))
        case other => planLater(other)
      }) :: Nil
    case RecursiveReference(name, _) =>
      throw new ParalaggException(
        ErrorCodes.ReferenceOutsideStep,
        s"the recursive relation $name stands for rows that do not exist yet, so it cannot be evaluated on its own.",
        "inside step only build a DataFrame; run actions on the result.")
    case _ => Nil
  }
}
