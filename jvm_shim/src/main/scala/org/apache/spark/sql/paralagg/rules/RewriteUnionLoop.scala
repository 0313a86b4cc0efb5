package org.apache.spark.sql.paralagg.rules

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet, Expression, ExprId}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Max, Min}
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.{Origin, TreeNodeTag}
import org.apache.spark.sql.paralagg.sql.{CompileRecursion, CteColumn, CteRelation, HeadAggregate, RecursiveCte}

/**
 * A recursive CTE of Spark's own (`UNION ALL`) of which only the least or greatest values of each key are wanted computes
 * only those, if the compiler proves that the others lead to nothing better.
 *
 * {{{
 *   Aggregate [node], [min(dist)]                       Aggregate [node], [min(dist)]
 *   +- UnionLoop (every path, for ever on a cycle)  →   +- RecursiveAggregate keys=[node] aggs=[min(dist)]
 * }}}
 *
 * A column that is neither key nor aggregated may be there if the recursion gets on without it. Once, after Spark's own
 * rules have put projections and filters where they belong. What is refused stays as it was, tagged with the reason.
 */
object RewriteUnionLoop extends Rule[LogicalPlan] {
  val Enabled = "spark.paralagg.sql.rewrite"

  /** Why a loop under min or max was left to Spark. */
  val Refused = TreeNodeTag[String]("paralagg.refused")

  private val Name = "recursive_cte"
  private val Reason = s"a recursive CTE under min or max, $Enabled is on"

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (conf.getConfString(Enabled, "true").toBoolean) plan.transformDown { case a: Aggregate => rewritten(a) }
    else plan

  private def rewritten(a: Aggregate): Aggregate = loopOf(a.child).filter(_ => takesExtremes(a)) match {
    case None => a
    case Some(loop) =>
      consumed(a, loop).flatMap(recursive(loop, _, namesAbove(a.child))) match {
        case Right(node) => a.copy(child = replaced(a.child, node))
        case Left(why) =>
          loop.setTagValue(Refused, why)
          logInfo(s"a recursive CTE under min or max stays as it is: $why")
          a
      }
  }

  private def loopOf(plan: LogicalPlan): Option[UnionLoop] = plan match {
    case loop: UnionLoop => Some(loop)
    case Project(_, child) => loopOf(child)
    case Filter(_, child) => loopOf(child)
    case _ => None
  }

  private def extremes(a: Aggregate): Seq[AggregateExpression] =
    a.aggregateExpressions.flatMap(_.collect { case e: AggregateExpression => e })

  private def takesExtremes(a: Aggregate): Boolean = {
    val all = extremes(a)
    all.nonEmpty && all.forall(e => e.aggregateFunction.isInstanceOf[Min] || e.aggregateFunction.isInstanceOf[Max])
  }

  /** What the aggregate takes of each of the loop's columns: `key`, `min`, `max`, or nothing. */
  private def consumed(a: Aggregate, loop: UnionLoop): Either[String, Map[ExprId, String]] = {
    val origins = columnsBelow(a.child)
    def column(e: Expression): Option[ExprId] = e match {
      case attribute: Attribute => origins.get(attribute.exprId)
      case _ => None
    }
    val keys = a.groupingExpressions.map(e =>
      column(e).map(_ -> "key").toRight("it groups by an expression, not by one of its columns"))
    val values = extremes(a).map { e =>
      val what = e.aggregateFunction.children.headOption.flatMap(column)
      what.filter(_ => e.filter.isEmpty).map(_ -> e.aggregateFunction.prettyName).toRight(
        s"${e.sql} is not of a column")
    }
    val (wrong, found) = (keys ++ values).distinct.partitionMap(identity)
    val taken = found.toMap
    if (wrong.nonEmpty) Left(wrong.head)
    else if (found.length > taken.size) Left("one of its columns is taken in two ways, as key, min or max")
    else if (!filters(a.child).forall(isOfKeys(_, taken))) Left("its result is filtered by more than its keys")
    else if (loop.limit.isDefined) Left("it has a LIMIT")
    else Right(taken)
  }

  private def filters(plan: LogicalPlan): Seq[Filter] = plan match {
    case f: Filter => f +: filters(f.child)
    case Project(_, child) => filters(child)
    case _ => Nil
  }

  private def isOfKeys(f: Filter, taken: Map[ExprId, String]): Boolean = {
    val origins = columnsBelow(f.child)
    f.deterministic && f.condition.references.forall(r => origins.get(r.exprId).flatMap(taken.get).contains("key"))
  }

  /** What the loop's columns are called where they are aggregated: the CTE's names, not those of its first branch. */
  private def namesAbove(plan: LogicalPlan): Map[ExprId, String] = {
    val origins = columnsBelow(plan)
    plan.output.flatMap(a => origins.get(a.exprId).map(_ -> a.name)).toMap
  }

  /** Of each column above the loop that is one of the loop's, which. */
  private def columnsBelow(plan: LogicalPlan): Map[ExprId, ExprId] = plan match {
    case Project(list, child) =>
      val below = columnsBelow(child)
      list.flatMap {
        case a: Attribute => below.get(a.exprId).map(a.exprId -> _)
        case alias @ Alias(a: Attribute, _) => below.get(a.exprId).map(alias.exprId -> _)
        case _ => None
      }.toMap
    case Filter(_, child) => columnsBelow(child)
    case other => other.output.map(a => a.exprId -> a.exprId).toMap
  }

  /** The loop's own node replaced, and projections above it without the columns that are gone. */
  private def replaced(plan: LogicalPlan, node: LogicalPlan): LogicalPlan = plan match {
    case Project(list, child) =>
      val below = replaced(child, node)
      Project(list.filter(_.references.subsetOf(below.outputSet)), below)
    case f: Filter => f.copy(child = replaced(f.child, node))
    case _ => node
  }

  private def recursive(
      loop: UnionLoop, taken: Map[ExprId, String], called: Map[ExprId, String]): Either[String, LogicalPlan] = {
    val references = loop.recursion.collect { case r: UnionLoopRef => r }
    if (references.length != 1 || references.head.loopId != loop.id || references.head.accumulated) {
      return Left("it reads itself more than once, and Spark joins only the rows of the last round with each other")
    }
    if (loop.anchor.exists(_.isInstanceOf[UnionLoopRef])) return Left("it stands in another recursion")
    val positions = loop.output.indices.filter(n => taken.contains(loop.output(n).exprId))
    val wanted = positions.map(n => called.getOrElse(loop.output(n).exprId, loop.output(n).name))
    val names = if (wanted.distinct.length == wanted.length) wanted else positions.map(n => s"c$n")
    val relation = relationOf(loop, positions, names, taken)
    for {
      step <- pruned(loop, references.head, positions, relation)
      cte = RecursiveCte(Name, Seq(relation), loop.maxDepth, Seq(projected(loop.anchor, positions), step))
      found <- compiled(cte)
    } yield Project(
      positions.zip(found.output).map { case (n, a) => Alias(a, a.name)(exprId = loop.output(n).exprId) }, found)
  }

  private def projected(plan: LogicalPlan, positions: Seq[Int]): LogicalPlan = Project(positions.map(plan.output), plan)

  /** The recursion with the columns at `positions` alone, if these need no others. */
  private def pruned(
      loop: UnionLoop, reference: UnionLoopRef, positions: Seq[Int], of: CteRelation): Either[String, LogicalPlan] = {
    val kept = positions.map(reference.output)
    val dropped = AttributeSet(reference.output.filterNot(kept.contains))
    val whole = projected(loop.recursion, positions)
    val least = if (dropped.isEmpty) whole else Iterator.iterate(whole)(ColumnPruning(_)).drop(Rounds).next()
    val read = reference.output.indexWhere(a => dropped.contains(a) && least.exists(_.references.contains(a)))
    Option.when(read >= 0)(s"its recursion reads column ${read + 1}, which is neither a key nor aggregated").toLeft {
      val columns = kept.zip(of.columns.get).map { case (a, c) => a.withNullability(true).withName(c.name) }
      least.transformUp { case _: UnionLoopRef => of.reference(columns) }
    }
  }

  private val Rounds = 4 // a projection sinks through a join and the projections below it

  private def relationOf(
      loop: UnionLoop, positions: Seq[Int], names: Seq[String], taken: Map[ExprId, String]): CteRelation = {
    val aggregates = positions.zip(names).flatMap { case (n, name) =>
      Option(taken(loop.output(n).exprId)).filter(_ != "key").map(f => name -> HeadAggregate(f, None, name, Origin()))
    }
    val columns = positions.zip(names).map { case (n, name) => CteColumn(name, loop.output(n).dataType) }
    CteRelation(
      Name, Some(names), aggregates.toMap, 1, 1, Seq(Origin(), Origin()), loop.origin, Some(columns))
  }

  private def compiled(cte: RecursiveCte): Either[String, LogicalPlan] =
    try CompileRecursion.compiled(cte, Reason, onlyLattice = true).left.map(refusal =>
        s"${refusal.code}: ${refusal.text}")
    catch { case NonFatal(e) => Left(Option(e.getMessage).getOrElse(e.toString)) } // Spark can still do it
}
