package org.apache.spark.sql.paralagg.sql

import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions.WindowExpression
import org.apache.spark.sql.catalyst.plans.{FullOuter, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.paralagg.ErrorCodes

/**
 * The pass that replaces a branch's reads of its own recursion by [[RecursiveName]], and refuses reads at unsupported
 * places. The compiler checks the rest (monotone filters, negation).
 */
class Placement(names: Seq[String], heads: Heads) {

  def bound(branch: LogicalPlan, relation: Cte): LogicalPlan = {
    forbidden(branch, relation).foreach { case (part, where, hint) => refuse(part, where, hint) }
    branch.subqueries.foreach(refuse(_, "in a subquery expression", Allowed))
    branch match {
      case r @ UnresolvedRelation(Seq(read), _, _) =>
        names.find(Cte.isSame(_, read)).fold[LogicalPlan](r)(n => SubqueryAlias(read, RecursiveName(n)))
      case w: UnresolvedWith =>
        val inside = Cte.parts(w, names).map { case (part, seen) => (part, new Placement(seen, heads)) }
        inside.init.foreach { case (cte, placement) => placement.refuse(cte, "in a WITH of its own", Allowed) }
        val (query, placement) = inside.last
        CurrentOrigin.withOrigin(w.origin)(w.copy(child = placement.bound(query, relation)))
      case other => other.mapChildren(bound(_, relation))
    }
  }

  /** Returns a part of `plan` that may not read the recursion, with a description and a hint. */
  private def forbidden(plan: LogicalPlan, relation: Cte): Option[(LogicalPlan, String, String)] = plan match {
    case _: Sort => Some((plan, "under ORDER BY", "order the result of the recursion"))
    case _: GlobalLimit | _: LocalLimit | _: Offset | _: Tail =>
      Some((plan, "under LIMIT or OFFSET", "limit the result of the recursion"))
    case Join(_, _, LeftOuter | RightOuter | FullOuter, _, _) =>
      Some((plan, "in an outer join", "an inner join, LEFT SEMI JOIN or a filter can read the recursion"))
    case a: Aggregate if !relation.hasKeys =>
      Some((a.child, "under GROUP BY or an aggregate",
          s"aggregate in the head of the CTE: ${relation.name}(key, min() AS value)"))
    case p: Project if p.projectList.exists(_.exists(_.isInstanceOf[WindowExpression])) =>
      Some((p.child, "under a window function", "apply it to the result of the recursion"))
    case r: RecursiveCte => Some((r, "in a recursion of its own", "define both in one WITH RECURSIVE"))
    case _ => None
  }

  private def refuse(part: LogicalPlan, where: String, hint: String): Unit = {
    val read = Cte.reads(part, names)
    if (read.nonEmpty) {
      throw new SqlProblem(
        ErrorCodes.SqlPlace,
        s"the recursive CTE ${read.toSeq.sorted.mkString(", ")} cannot be read $where",
        hint,
        heads.restored(Cte.place(part, names).get))
    }
  }

  private val Allowed = "read it in FROM: alone, in a join, or in a subquery there"
}
