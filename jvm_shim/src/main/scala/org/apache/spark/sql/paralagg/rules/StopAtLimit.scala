package org.apache.spark.sql.paralagg.rules

import org.apache.spark.sql.catalyst.expressions.IntegerLiteral
import org.apache.spark.sql.catalyst.plans.logical.{LocalLimit, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.paralagg.plan.RecursiveAggregate

/**
 * Lets a set end once it has as many rows as the query takes. Each row of a set is final when it is derived; a value
 * may still improve.
 * {{{
 *   LocalLimit 10                                    LocalLimit 10
 *   +- RecursiveAggregate [src, dst]       =>        +- RecursiveAggregate [src, dst], ends at 10 rows
 * }}}
 */
object StopAtLimit extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transform {
    case l @ LocalLimit(IntegerLiteral(rows), child) =>
      val limited = ended(child, rows)
      if (limited eq child) l else l.copy(child = limited)
  }

  private def ended(plan: LogicalPlan, rows: Int): LogicalPlan = plan match {
    case p @ Project(_, child) =>
      val limited = ended(child, rows)
      if (limited eq child) p else p.copy(child = limited)
    case fixpoint: RecursiveAggregate => fixpoint.ended(rows).getOrElse(fixpoint)
    case other => other
  }
}
