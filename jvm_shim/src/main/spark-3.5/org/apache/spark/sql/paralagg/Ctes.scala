package org.apache.spark.sql.paralagg

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias, UnionLoop, UnresolvedWith}

/** The CTEs of a WITH. Spark 3.5 and 4.0 have no limit for each. */
object Ctes {

  /** Returns the CTEs of a WITH: name, query, `MAX RECURSION LEVEL`, which this Spark does not have. */
  def of(w: UnresolvedWith): Seq[(String, SubqueryAlias, Option[Int])] =
    w.cteRelations.map { case (name, query) => (name, query, None) }

  def replaced(
      w: UnresolvedWith, child: LogicalPlan, ctes: Seq[(String, SubqueryAlias, Option[Int])]): UnresolvedWith =
    w.copy(child = child, cteRelations = ctes.map { case (name, query, _) => (name, query) })

  def maxDepth(loop: UnionLoop): Option[Int] = None
}
