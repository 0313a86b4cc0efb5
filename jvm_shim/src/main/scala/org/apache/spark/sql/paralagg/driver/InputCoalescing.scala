package org.apache.spark.sql.paralagg.driver

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.CoalesceShufflePartitions

/**
 * The AQE rule that coalesces shuffle partitions below each input of a fixpoint separately, as Spark does below a
 * union. Spark's rule does nothing there: it treats every other node with several children as a join.
 */
case class InputCoalescing(session: SparkSession) extends Rule[SparkPlan] {
  private val coalesce = CoalesceShufflePartitions(session.asInstanceOf[classic.SparkSession])

  override def apply(plan: SparkPlan): SparkPlan = plan.transform { case fixpoint: FixpointOperator =>
    fixpoint.withNewChildren(fixpoint.children.map(coalesce(_)))
  }
}
