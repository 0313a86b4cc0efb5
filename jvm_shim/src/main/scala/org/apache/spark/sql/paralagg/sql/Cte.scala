package org.apache.spark.sql.paralagg.sql

import org.apache.spark.sql.catalyst.analysis.{UnresolvedRelation, UnresolvedSubqueryColumnAliases}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.paralagg.SparkMinor

/** One `name(columns) AS (query)` of a parsed WITH RECURSIVE. */
class Cte(val name: String, val alias: SubqueryAlias, val maxDepth: Option[Int], heads: Heads) {

  private val (head, query) = alias.child match {
    case UnresolvedSubqueryColumnAliases(names, child) => (names.map(n => heads.part(n).toRight(n)), child)
    case other => (Nil, other)
  }

  /** Its USING KEY clause. */
  val usingKey: Option[UsingKey] = head.collectFirst { case Right(clause: UsingKey) => clause }

  private val calls = usingKey.toSeq.flatMap(_.calls) ++ head.collect { case Right(a: HeadAggregate) => a }

  /** The aggregates by column. With a USING KEY clause, columns are as written there until the first branch is resolved. */
  val aggregates: Map[String, HeadAggregate] = calls.filterNot(_.isTrace).map(a => a.column -> a).toMap

  /** The columns that no branch supplies: `path(dist) AS route`, `hops(dist) AS legs`. */
  val traces: Seq[HeadAggregate] = calls.filter(_.isTrace)

  /** Whether its head names keys: it has an aggregate, a path or hops, or a USING KEY clause. */
  val hasKeys: Boolean = usingKey.isDefined || calls.nonEmpty

  /** Returns this CTE with another query. */
  def reading(change: LogicalPlan => LogicalPlan): Cte = {
    val changed = alias.mapChildren(change).asInstanceOf[SubqueryAlias]
    if (changed.fastEquals(alias)) this else new Cte(name, changed, maxDepth, heads)
  }

  /** The names in its head, each with whether branches supply the column. */
  private val named: Seq[(String, Boolean)] = head.collect {
    case Left(name) => (name, !usingKey.exists(_.calls.exists(c => c.isTrace && Cte.isSame(c.column, name))))
    case Right(a: HeadAggregate) => (a.column, !a.isTrace)
  }

  /** The names of its columns, if the head has them. */
  val outputNames: Option[Seq[String]] = if (named.isEmpty) None else Some(named.map(_._1))

  /** The names of the columns that branches supply, if the head has them. */
  val columnNames: Option[Seq[String]] = outputNames.map(_ => named.collect { case (name, true) => name })

  val isUnion: Boolean = body(query)._1 match {
    case Distinct(u: Union) => !u.byName
    case _ => false
  }

  /** `UNION ALL` at the top: a bag, which keeps every derivation. */
  val isUnionAll: Boolean = body(query)._1 match {
    case u: Union => !u.byName
    case _ => false
  }

  /** The position of its query. */
  val place: Origin = heads.restored(query.origin)

  /** Returns the branches of its unions, each with the WITH above all of them. */
  def branches: Seq[LogicalPlan] = {
    val (top, wrap) = body(query)
    Cte.flattened(top).map(wrap)
  }

  /** Returns the query below its WITH, and a function that adds this WITH to a part of the query. */
  private def body(plan: LogicalPlan): (LogicalPlan, LogicalPlan => LogicalPlan) = plan match {
    case w: UnresolvedWith if !SparkMinor.allowsRecursion(w) => (w.child, part => w.copy(child = part))
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

  /** Returns those of `names` that `plan` reads as relations, at any depth. */
  def reads(plan: LogicalPlan, names: Seq[String]): Set[String] = plan match {
    case UnresolvedRelation(Seq(name), _, _) => names.filter(isSame(_, name)).toSet
    case other => parts(other, names).flatMap { case (part, seen) => reads(part, seen) }.toSet
  }

  /** Returns the position of the first read of one of `names`. */
  def place(plan: LogicalPlan, names: Seq[String]): Option[Origin] = plan match {
    case r: UnresolvedRelation if reads(r, names).nonEmpty => Some(r.origin)
    case other =>
      parts(other, names).iterator.map { case (part, seen) => place(part, seen) }.collectFirst { case Some(at) => at }
  }

  /**
   * Returns the parts of `plan`, each with the visible `names`. A WITH hides the names that it defines from the query
   * below, its last part. Only a recursive one hides them from its CTEs: in others Spark resolves a name to the outer
   * recursion, even if an earlier CTE has that name.
   */
  def parts(plan: LogicalPlan, names: Seq[String]): Seq[(LogicalPlan, Seq[String])] = plan match {
    case w: UnresolvedWith =>
      val visible = names.filterNot(n => w.cteRelations.exists(r => isSame(r._1, n)))
      w.cteRelations.map(r => (r._2, if (SparkMinor.allowsRecursion(w)) visible else names)) :+ ((w.child, visible))
    case other => (other.children ++ other.subqueries).map((_, names))
  }
}
