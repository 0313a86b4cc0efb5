package org.apache.spark.sql.paralagg.rules

import org.apache.spark.sql.catalyst.expressions.{And, Expression, PredicateHelper, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.paralagg.plan.RecursiveAggregate

/**
 * Pushes a filter on keys that every rule copies from every recursive atom into the rows that the recursion starts
 * from. All pairs with `src = 7` then cost one source.
 * {{{
 *   Filter (src = 7 AND dist < 9)            Filter (dist < 9)
 *   +- RecursiveAggregate            =>      +- RecursiveAggregate
 *      :- base                                  :- Filter (src = 7)
 *      +- edges                                 :  +- base
 *                                               +- edges
 * }}}
 * The Plan lists these keys (`carried`, compile/physical/find_carried.py).
 */
object PushKeyFilter extends Rule[LogicalPlan] with PredicateHelper {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transform {
    case whole @ Filter(condition, fixpoint: RecursiveAggregate) =>
      val carried = fixpoint.carriedKeys
      def isOnCarried(e: Expression): Boolean =
        e.deterministic && !SubqueryExpression.hasSubquery(e) && e.references.nonEmpty &&
          e.references.forall(carried.contains)
      val (pushed, kept) = splitConjunctivePredicates(condition).partition(isOnCarried)
      val started = if (pushed.isEmpty) None else fixpoint.started(pushed)
      started.fold[LogicalPlan](whole)(f => kept.reduceOption(And).fold[LogicalPlan](f)(Filter(_, f)))
  }
}
