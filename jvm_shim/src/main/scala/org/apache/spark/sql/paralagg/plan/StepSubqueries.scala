package org.apache.spark.sql.paralagg.plan

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.expressions.{Alias, ScalarSubquery}
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
      case op @ (_: Filter | _: Project | Join(_, _, Inner, _, _)) if Analysis.isRecursive(op) => withValues(op)
    }))

  /** Returns `op` with the scalar subqueries of its expressions as columns of sources, joined to its first child. */
  private def withValues(op: LogicalPlan): LogicalPlan = {
    val sources = ArrayBuffer.empty[LogicalPlan]
    val replaced = op.transformExpressions {
      case s: ScalarSubquery if s.children.isEmpty =>
        val value = Alias(s, "value")()
        sources += Project(Seq(value), OneRowRelation())
        value.toAttribute
    }
    val first = sources.foldLeft(op.children.head)(Join(_, _, Inner, None, JoinHint.NONE))
    val joined = replaced.withNewChildren(first +: op.children.tail)
    if (sources.isEmpty) op else if (joined.output == op.output) joined else Project(op.output, joined)
  }
}
