package org.apache.spark.sql.paralagg.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.paralagg.plan.RecursiveAggregate
import org.apache.spark.sql.types.{DataType, DoubleType, NumericType}

/**
 * Replaces an aggregate by all keys of a fixpoint, or a distinct, by a projection: a fixpoint has one row for each key,
 * so each group has one row.
 * {{{
 *   Aggregate [node], [node, min(dist), count(1)]              Project [node, dist, 1]
 *   +- RecursiveAggregate [node, dist]               =>        +- RecursiveAggregate [node, dist]
 * }}}
 */
object DropAggregate extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transform {
    case a: Aggregate
        if a.child.exists(_.isInstanceOf[RecursiveAggregate]) && isOneRowEach(a.groupingExpressions, a.child) &&
          a.aggregateExpressions.forall(
            _.collect { case e: AggregateExpression => e }.forall(forOneRow(_).isDefined)) =>
      val values = a.aggregateExpressions.map(_.transform { case e: AggregateExpression => forOneRow(e).get })
      Project(values.map(_.asInstanceOf[NamedExpression]), a.child)
  }

  private def isOneRowEach(grouping: Seq[Expression], child: LogicalPlan): Boolean =
    grouping.nonEmpty && !grouping.exists(mayBeNegativeZero) &&
      child.distinctKeys.exists(_.subsetOf(ExpressionSet(grouping)))

  /** Tests for a grouping expression that may return -0.0, which grouping would normalise to 0.0. */
  private def mayBeNegativeZero(grouping: Expression): Boolean =
    !grouping.isInstanceOf[Attribute] && !(NormalizeFloatingNumbers.normalize(grouping) eq grouping)

  /** Returns the aggregate of a single row; None for unsupported functions. */
  private def forOneRow(e: AggregateExpression): Option[Expression] =
    if (e.filter.isDefined) None
    else e.aggregateFunction match {
      case Min(value) => Some(value)
      case Max(value) => Some(value)
      case First(value, _) => Some(value)
      case Last(value, _) => Some(value)
      // A sum starts at 0.0, so the sum of -0.0 is 0.0.
      case s: Sum => Some(NormalizeFloatingNumbers.normalize(Cast(s.child, s.dataType)))
      case a: Average if a.child.dataType.isInstanceOf[NumericType] && a.dataType == DoubleType =>
        Some(NormalizeFloatingNumbers.normalize(Cast(a.child, DoubleType)))
      case Count(values) =>
        val nullable = values.filter(_.nullable).map(IsNotNull)
        Some(nullable.reduceOption[Expression](And).fold[Expression](Literal(1L))(If(_, Literal(1L), Literal(0L))))
      case _ => None
    }
}
