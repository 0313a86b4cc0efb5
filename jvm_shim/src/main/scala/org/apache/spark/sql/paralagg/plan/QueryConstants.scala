package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.expressions.{Expression, LeafExpression, LeafMathExpression, Literal, Unevaluable}
import org.apache.spark.sql.catalyst.optimizer.{ComputeCurrentTime, ReplaceCurrentLike, SpecialDatetimeValues}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Union}
import org.apache.spark.sql.connector.catalog.CatalogManager

/**
 * Replaces what has one value in a query by that value, as Spark's optimizer does: the clock, the user, the current
 * catalog and schema, session variables. Spark does not optimise steps, and tasks cannot evaluate these expressions.
 */
object QueryConstants {

  /** Returns the plans with values; the clock has the same in all of them. */
  def folded(plans: Seq[LogicalPlan], catalogs: CatalogManager): Seq[LogicalPlan] = {
    val timed = SpecialDatetimeValues(ComputeCurrentTime(Union(plans)))
    ReplaceCurrentLike(catalogs)(timed).children.map(_.transformUpWithSubqueries { case node =>
      node.transformExpressionsUp { case e if isConstant(e) => Literal(e.eval(), e.dataType) }
    })
  }

  /** Tests for a session variable, without its class, which Spark 3.5 does not have. */
  private def isConstant(e: Expression): Boolean = e match {
    case _: Literal | _: Unevaluable | _: LeafMathExpression => false
    case _: LeafExpression => e.foldable
    case _ => false
  }
}
