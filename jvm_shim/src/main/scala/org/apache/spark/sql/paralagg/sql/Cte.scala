package org.apache.spark.sql.paralagg.sql

import org.apache.spark.sql.catalyst.analysis.{UnresolvedRelation, UnresolvedSubqueryColumnAliases}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.internal.SQLConf

/** One `name(columns) AS (query)` of a parsed WITH RECURSIVE, read for what it says of recursion. */
class Cte(val name: String, val alias: SubqueryAlias, val maxDepth: Option[Int], heads: Heads) {

  private val (written, query) = alias.child match {
    case UnresolvedSubqueryColumnAliases(names, child) => (Some(names), child)
    case other => (None, other)
  }

  val aggregates: Map[String, HeadAggregate] =
    written.toSeq.flatten.flatMap(heads.aggregate).map(a => a.column -> a).toMap

  /** The names of its columns, if the head says them. */
  val columnNames: Option[Seq[String]] = written.map(_.map(n => heads.aggregate(n).fold(n)(_.column)))

  val isUnion: Boolean = body(query)._1 match {
    case Distinct(u: Union) => !u.byName
    case _ => false
  }

  /** `UNION ALL` at the top: a bag, in which each derivation counts. */
  val isUnionAll: Boolean = body(query)._1 match {
    case u: Union => !u.byName
    case _ => false
  }

  /** Where its query stands. */
  val place: Origin = heads.restored(query.origin)

  /** The branches of its unions, each with the WITH that stands above them all. */
  def branches: Seq[LogicalPlan] = {
    val (top, around) = body(query)
    Cte.flattened(top).map(around)
  }

  /** The query below a WITH of its own, and what puts that WITH around a part of it. */
  private def body(plan: LogicalPlan): (LogicalPlan, LogicalPlan => LogicalPlan) = plan match {
    case w: UnresolvedWith if !w.allowRecursion => (w.child, part => w.copy(child = part))
    case other => (other, identity)
  }
}

object Cte {

  private def flattened(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
    case Distinct(u: Union) if !u.byName => u.children.flatMap(flattened)
    case u: Union if !u.byName => u.children.flatMap(flattened)
    case other => Seq(other)
  }

  def isSame(a: String, b: String): Boolean = SQLConf.get.resolver(a, b)

  /** The names of `names` that `plan` reads as relations, wherever. */
  def reads(plan: LogicalPlan, names: Seq[String]): Set[String] = plan match {
    case UnresolvedRelation(Seq(name), _, _) => names.filter(isSame(_, name)).toSet
    case other => parts(other, names).flatMap { case (part, seen) => reads(part, seen) }.toSet
  }

  /** Where `plan` first reads one of `names`. */
  def place(plan: LogicalPlan, names: Seq[String]): Option[Origin] = plan match {
    case r: UnresolvedRelation if reads(r, names).nonEmpty => Some(r.origin)
    case other => parts(other, names).iterator.flatMap { case (part, seen) => place(part, seen) }.nextOption()
  }

  /**
   * What `plan` consists of, each part with those of `names` that it sees: a WITH hides those that it defines from the
   * query below, its last part. From its CTEs it hides them only if it is recursive: in others Spark itself takes the
   * name for the outer recursion, also where a CTE of the name stands before.
   */
  def parts(plan: LogicalPlan, names: Seq[String]): Seq[(LogicalPlan, Seq[String])] = plan match {
    case w: UnresolvedWith =>
      val visible = names.filterNot(n => w.cteRelations.exists(r => isSame(r._1, n)))
      w.cteRelations.map(r => (r._2, if (w.allowRecursion) visible else names)) :+ ((w.child, visible))
    case other => (other.children ++ other.subqueries).map((_, names))
  }
}
