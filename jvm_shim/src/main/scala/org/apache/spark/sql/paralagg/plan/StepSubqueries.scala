package org.apache.spark.sql.paralagg.plan

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, ScalarSubquery}
import org.apache.spark.sql.catalyst.optimizer.{
  PullupCorrelatedPredicates, RewriteNonCorrelatedExists, RewritePredicateSubquery
}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, JoinHint, LogicalPlan, OneRowRelation, Project}

/**
 * Turns subqueries above a recursive reference into joins, which a rule can express. IN and EXISTS become semi and anti
 * joins by Spark's own rules; a scalar subquery becomes a source of one row, which Spark computes with the other sources.
 * {{{
 *   Filter (n < scalar-subquery)             Project [n]
 *   +- RecursiveReference [n]        =>      +- Filter (n < value)
 *                                               +- Join Inner
 *                                                  :- RecursiveReference [n]
 *                                                  +- Project [scalar-subquery AS value]
 * }}}
 */
object StepSubqueries {
  def joined(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(p => Analysis.isRecursive(p) && p.subqueries.nonEmpty)) plan
    else RewritePredicateSubquery(PullupCorrelatedPredicates(RewriteNonCorrelatedExists(plan).transformUp {
      case f @ Filter(condition, child) if Analysis.isRecursive(child) =>
        val values = new Values
        val replaced = values.replace(condition)
        if (values.isEmpty) f else Project(f.output, Filter(replaced, values.joinedTo(child)))
      case p @ Project(list, child) if Analysis.isRecursive(child) =>
        val values = new Values
        val replaced = list.map(values.replace(_))
        if (values.isEmpty) p else Project(replaced, values.joinedTo(child))
      case j @ Join(left, _, Inner, Some(condition), _) if Analysis.isRecursive(j) =>
        val values = new Values
        val replaced = values.replace(condition)
        if (values.isEmpty) j
        else Project(j.output, j.copy(left = values.joinedTo(left), condition = Some(replaced)))
    }))

  /** The scalar subqueries of one operator, each as a column of a source. */
  private final class Values {
    private val sources = ArrayBuffer.empty[Project]

    def isEmpty: Boolean = sources.isEmpty

    def replace[E <: Expression](expression: E): E = expression.transform {
      case s: ScalarSubquery if s.children.isEmpty =>
        val value = Alias(s, "value")()
        sources += Project(Seq(value), OneRowRelation())
        value.toAttribute
    }.asInstanceOf[E]

    def joinedTo(child: LogicalPlan): LogicalPlan =
      sources.foldLeft(child)(Join(_, _, Inner, None, JoinHint.NONE))
  }
}
