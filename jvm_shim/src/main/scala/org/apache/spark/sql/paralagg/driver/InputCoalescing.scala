package org.apache.spark.sql.paralagg.driver

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.CoalesceShufflePartitions

/**
 * Coalesces shuffle partitions below each input of a fixpoint by itself, as Spark does for the children of a union. Spark's
 * own rule does nothing there: it knows unions, and takes every other node with several children for a join.
 */
case class InputCoalescing(session: SparkSession) extends Rule[SparkPlan] {
  private val coalesce = CoalesceShufflePartitions(session.asInstanceOf[classic.SparkSession])

  override def apply(plan: SparkPlan): SparkPlan = plan.transform { case fixpoint: FixpointOperator =>
    fixpoint.withInputs(fixpoint.inputs.map(coalesce(_)))
  }
}
