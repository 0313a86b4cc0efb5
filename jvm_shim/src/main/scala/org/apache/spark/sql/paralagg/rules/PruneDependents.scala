package org.apache.spark.sql.paralagg.rules

import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.paralagg.plan.{RecursiveAggregate, Routes}

/**
 * Removes a dependent column that the query does not read, if the recursion does not need it.
 * {{{
 *   Project [node, dist]                                       Project [node, dist]
 *   +- RecursiveAggregate [node, dist, parent]       =>        +- RecursiveAggregate [node, dist]
 * }}}
 * Catalyst's ColumnPruning has pushed projections down to the fixpoint by then, or to the filter above it. The
 * remaining computation is in the Plan (`narrower`, compile/physical/narrow.py). Routes that the query does not read are
 * not made.
 */
object PruneDependents extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transform {
    case p @ Project(_, routes: Routes) => routes.withoutRoutes(p.references).fold(p)(child => p.copy(child = child))
    case p @ Project(_, fixpoint: RecursiveAggregate) =>
      fixpoint.narrowed(p.references).fold(p)(smaller => p.copy(child = smaller))
    case p @ Project(_, f @ Filter(condition, fixpoint: RecursiveAggregate)) =>
      fixpoint.narrowed(p.references ++ condition.references).fold(p)(smaller =>
        p.copy(child = f.copy(child = smaller)))
  }
}
