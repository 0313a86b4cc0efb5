package org.apache.spark.sql.paralagg.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.paralagg.plan.RecursiveAggregate
import org.apache.spark.sql.types.{DataType, DoubleType, NumericType}

/**
 * A fixpoint has one row a key, so an aggregate by all of its keys, or a distinct, has one row a group: it becomes a
 * projection of that row.
 * {{{
 *   Aggregate [node], [node, min(dist), count(1)]              Project [node, dist, 1]
 *   +- RecursiveAggregate [node, dist]               =>        +- RecursiveAggregate [node, dist]
 * }}}
 */
object DropAggregate extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transform {
    case a @ Aggregate(grouping, outputs, child, _)
        if child.exists(_.isInstanceOf[RecursiveAggregate]) && isOneRowEach(grouping, child) &&
          outputs.forall(_.collect { case e: AggregateExpression => e }.forall(ofOneRow(_).isDefined)) =>
      Project(outputs.map(_.transform { case e: AggregateExpression => ofOneRow(e).get }.asInstanceOf[NamedExpression]),
        a.child)
  }

  private def isOneRowEach(grouping: Seq[Expression], child: LogicalPlan): Boolean =
    grouping.nonEmpty && !grouping.exists(makesZero) && child.distinctKeys.exists(_.subsetOf(ExpressionSet(grouping)))

  /** Grouping makes one zero of two, where an expression may have made the other. */
  private def makesZero(grouping: Expression): Boolean =
    !grouping.isInstanceOf[Attribute] && !(NormalizeFloatingNumbers.normalize(grouping) eq grouping)

  /** What the aggregate of a single row is; None for those not known here. */
  private def ofOneRow(e: AggregateExpression): Option[Expression] =
    if (e.filter.isDefined) None
    else e.aggregateFunction match {
      case Min(value) => Some(value)
      case Max(value) => Some(value)
      case First(value, _) => Some(value)
      case Last(value, _) => Some(value)
      // A sum begins at 0.0, so that of -0.0 is 0.0.
      case s: Sum => Some(NormalizeFloatingNumbers.normalize(as(s.child, s.dataType)))
      case a: Average if a.child.dataType.isInstanceOf[NumericType] && a.dataType == DoubleType =>
        Some(NormalizeFloatingNumbers.normalize(as(a.child, DoubleType)))
      case Count(values) =>
        val nullable = values.filter(_.nullable).map(IsNotNull)
        Some(nullable.reduceOption[Expression](And).fold[Expression](Literal(1L))(If(_, Literal(1L), Literal(0L))))
      case _ => None
    }

  private def as(value: Expression, dataType: DataType): Expression =
    if (value.dataType == dataType) value else Cast(value, dataType)
}
