package org.apache.spark.sql.paralagg.rules

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, AttributeMap, AttributeSet, Expression, ExprId}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Max, Min}
import org.apache.spark.sql.catalyst.optimizer.{ColumnPruning, PushDownPredicates}
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.{Origin, TreeNodeTag}
import org.apache.spark.sql.paralagg.Ctes
import org.apache.spark.sql.paralagg.sql.{CompileRecursion, CteColumn, CteRelation, HeadAggregate, RecursiveCte}
import org.apache.spark.util.Utils

/**
 * Rewrites a recursive CTE of Spark (`UNION ALL`) below min or max by keys, so that it computes only the least or
 * greatest values of each key. The compiler must prove that other values lead to nothing better.
 *
 * {{{
 *   Aggregate [node], [min(dist)]                       Aggregate [node], [min(dist)]
 *   +- UnionLoop (every path, for ever on a cycle)  →   +- RecursiveAggregate keys=[node] aggs=[min(dist)]
 * }}}
 *
 * The CTE may have a column that is neither key nor aggregated, if the recursion does not need it. The rule runs once,
 * after Spark's rules have pushed projections and filters; then the other rules for fixpoints see its result. A refused
 * CTE stays unchanged, with the reason as a tag.
 */
object RewriteUnionLoop extends Rule[LogicalPlan] {
  val Enabled = "spark.paralagg.sql.rewrite"

  /** The reason why a loop under min or max was left to Spark. */
  val Refused = TreeNodeTag[String]("paralagg.refused")

  private val Name = "recursive_cte"
  private val Reason = s"a recursive CTE under min or max, $Enabled is on"

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!conf.getConfString(Enabled, "true").equalsIgnoreCase("false")) plan.transformDown { case a: Aggregate =>
      rewrite(a)
    }
    else plan

  private def rewrite(a: Aggregate): LogicalPlan = a.child match {
    case PhysicalOperation(fields, filters, loop: UnionLoop) if takesExtremes(a) =>
      val columns = fields.collect {
        case column: Attribute => column.toAttribute -> column
        case alias @ Alias(column: Attribute, _) => alias.toAttribute -> column
      }
      consumed(a, AttributeMap(columns), filters, loop).flatMap { uses =>
        recursive(loop, uses, columns.map { case (above, column) => column.exprId -> above.name }.toMap)
      } match {
        case Right(node) =>
          val kept = fields.filter(_.references.subsetOf(node.outputSet)) // without unneeded columns
          optimize(a.copy(child = Project(kept, filters.reduceOption(And).fold(node)(Filter(_, node)))))
        case Left(reason) =>
          loop.setTagValue(Refused, reason)
          logInfo(s"a recursive CTE under min or max stays as it is: $reason")
          a
      }
    case _ => a
  }

  /** Applies the rules of the optimizer's earlier batch: a filter on keys is pushed to the fixpoint, then below it. */
  private def optimize(rewritten: LogicalPlan): LogicalPlan = {
    val excluded = conf.optimizerExcludedRules.toSeq.flatMap(Utils.stringToSeq)
    val rules = PushDownPredicates +: Rules.all :+ PushDownPredicates
    rules.filterNot(rule => excluded.contains(rule.ruleName)).foldLeft(rewritten)((plan, rule) => rule(plan))
  }

  private def extremes(a: Aggregate): Seq[AggregateExpression] =
    a.aggregateExpressions.flatMap(_.collect { case e: AggregateExpression => e })

  private def takesExtremes(a: Aggregate): Boolean = {
    val all = extremes(a)
    all.nonEmpty && all.forall(e => e.aggregateFunction.isInstanceOf[Min] || e.aggregateFunction.isInstanceOf[Max])
  }

  /**
   * Returns how the aggregate uses each of the loop's columns: as `key`, `min` or `max`; none if unused. `columns` maps
   * columns above to those of the loop, and `filters` are over the loop's.
   */
  private def consumed(
      a: Aggregate, columns: AttributeMap[Attribute], filters: Seq[Expression], loop: UnionLoop)
      : Either[String, Map[ExprId, String]] = {
    def column(e: Expression): Option[ExprId] = e match {
      case above: Attribute => columns.get(above).map(_.exprId)
      case _ => None
    }
    val keys = a.groupingExpressions.map(e =>
      column(e).map(_ -> "key").toRight("it groups by an expression, not by one of its columns"))
    val values = extremes(a).map { e =>
      val argument = e.aggregateFunction.children.headOption.flatMap(column)
      argument.filter(_ => e.filter.isEmpty).map(_ -> e.aggregateFunction.prettyName).toRight(
        s"${e.sql} is not of a column")
    }
    val all = (keys ++ values).distinct
    val errors = all.collect { case Left(error) => error }
    val pairs = all.collect { case Right(pair) => pair }
    val uses = pairs.toMap
    def isOfKeys(filter: Expression) =
      filter.deterministic && filter.references.forall(r => uses.get(r.exprId).contains("key"))
    if (errors.nonEmpty) Left(errors.head)
    else if (pairs.length > uses.size) Left("one of its columns is taken in two ways, as key, min or max")
    else if (!filters.forall(isOfKeys)) Left("its result is filtered by more than its keys")
    else if (loop.limit.isDefined) Left("it has a LIMIT")
    else Right(uses)
  }

  private def recursive(
      loop: UnionLoop, uses: Map[ExprId, String], namesAbove: Map[ExprId, String]): Either[String, LogicalPlan] = {
    val references = loop.recursion.collect { case r: UnionLoopRef => r }
    if (references.length != 1 || references.head.loopId != loop.id || references.head.accumulated) {
      return Left("it reads itself more than once, and Spark joins only the rows of the last round with each other")
    }
    if (loop.anchor.exists(_.isInstanceOf[UnionLoopRef])) return Left("it stands in another recursion")
    val positions = loop.output.indices.filter(n => uses.contains(loop.output(n).exprId))
    val preferred = positions.map(n => namesAbove.getOrElse(loop.output(n).exprId, loop.output(n).name))
    val names = if (preferred.distinct.length == preferred.length) preferred else positions.map(n => s"c$n")
    val relation = relationOf(loop, positions, names, uses)
    for {
      step <- pruned(loop, references.head, positions, relation)
      cte = RecursiveCte(Name, Seq(relation), Ctes.maxDepth(loop), Seq(projected(loop.anchor, positions), step))
      fixpoint <- compiled(cte)
    } yield Project(
      positions.zip(fixpoint.output).map { case (n, a) => Alias(a, a.name)(exprId = loop.output(n).exprId) }, fixpoint)
  }

  private def projected(plan: LogicalPlan, positions: Seq[Int]): LogicalPlan = Project(positions.map(plan.output), plan)

  /** Returns the recursion with only the columns at `positions`, if these need no others. */
  private def pruned(
      loop: UnionLoop, reference: UnionLoopRef, positions: Seq[Int], relation: CteRelation)
      : Either[String, LogicalPlan] = {
    val kept = positions.map(reference.output)
    val dropped = AttributeSet(reference.output.filterNot(kept.contains))
    val whole = projected(loop.recursion, positions)
    val minimal = if (dropped.isEmpty) whole else Iterator.iterate(whole)(ColumnPruning(_)).drop(Rounds).next()
    val read = reference.output.indexWhere(a => dropped.contains(a) && minimal.exists(_.references.contains(a)))
    if (read >= 0) Left(s"its recursion reads column ${read + 1}, which is neither a key nor aggregated")
    else {
      val columns = kept.zip(relation.columns.get).map { case (a, c) => a.withNullability(true).withName(c.name) }
      Right(minimal.transformUp { case _: UnionLoopRef => relation.reference(columns) })
    }
  }

  private val Rounds = 4 // to push a projection through a join and the projections below it

  private def relationOf(
      loop: UnionLoop, positions: Seq[Int], names: Seq[String], uses: Map[ExprId, String]): CteRelation = {
    val aggregates = positions.zip(names).flatMap { case (n, name) =>
      Option(uses(loop.output(n).exprId)).filter(_ != "key").map(f => name -> HeadAggregate(f, None, name, Origin()))
    }
    val columns = positions.zip(names).map { case (n, name) => CteColumn(name, loop.output(n).dataType) }
    CteRelation(
      Name, Some(names), aggregates.toMap, 1, 1, Seq(Origin(), Origin()), loop.origin, Some(columns))
  }

  private def compiled(cte: RecursiveCte): Either[String, LogicalPlan] =
    try CompileRecursion.compiled(cte, Reason, onlyLattice = true).left.map(refusal =>
        s"${refusal.code}: ${refusal.text}")
    catch { case NonFatal(e) => Left(Option(e.getMessage).getOrElse(e.toString)) } // Spark can still evaluate it
}
