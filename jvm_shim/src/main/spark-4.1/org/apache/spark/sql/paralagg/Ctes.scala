package org.apache.spark.sql.paralagg

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias, UnionLoop, UnresolvedWith}

/** The CTEs of a WITH. Spark 4.1 and later know how deep each may recur. */
object Ctes {

  /** Returns the CTEs of a WITH: name, query, `MAX RECURSION LEVEL`. */
  def of(w: UnresolvedWith): Seq[(String, SubqueryAlias, Option[Int])] = w.cteRelations

  def replaced(
      w: UnresolvedWith, child: LogicalPlan, ctes: Seq[(String, SubqueryAlias, Option[Int])]): UnresolvedWith =
    w.copy(child = child, cteRelations = ctes)

  def maxDepth(loop: UnionLoop): Option[Int] = loop.maxDepth
}
