package org.apache.spark.sql.paralagg.rules

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, AttributeMap, AttributeSet, Expression, ExprId}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Max, Min}
import org.apache.spark.sql.catalyst.optimizer.{ColumnPruning, PushDownPredicates}
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.{Origin, TreeNodeTag}
import org.apache.spark.sql.paralagg.sql.{CompileRecursion, CteColumn, CteRelation, HeadAggregate, RecursiveCte}
import org.apache.spark.util.Utils

/**
 * A recursive CTE of Spark's own (`UNION ALL`) of which only the least or greatest values of each key are wanted
 * computes only those, if the compiler proves that the others lead to nothing better.
 *
 * {{{
 *   Aggregate [node], [min(dist)]                       Aggregate [node], [min(dist)]
 *   +- UnionLoop (every path, for ever on a cycle)  →   +- RecursiveAggregate keys=[node] aggs=[min(dist)]
 * }}}
 *
 * A column that is neither key nor aggregated may be there if the recursion gets on without it. Once, after Spark's own
 * rules have put projections and filters where they belong; the other rules for fixpoints then see what it made. What
 * is refused stays as it was, tagged with the reason.
 */
object RewriteUnionLoop extends Rule[LogicalPlan] {
  val Enabled = "spark.paralagg.sql.rewrite"

  /** Why a loop under min or max was left to Spark. */
  val Refused = TreeNodeTag[String]("paralagg.refused")

  private val Name = "recursive_cte"
  private val Reason = s"a recursive CTE under min or max, $Enabled is on"

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!conf.getConfString(Enabled, "true").equalsIgnoreCase("false")) plan.transformDown { case a: Aggregate =>
      rewritten(a)
    }
    else plan

  private def rewritten(a: Aggregate): LogicalPlan = a.child match {
    case PhysicalOperation(fields, filters, loop: UnionLoop) if takesExtremes(a) =>
      val columns = fields.collect {
        case own: Attribute => own.toAttribute -> own
        case alias @ Alias(own: Attribute, _) => alias.toAttribute -> own
      }
      consumed(a, AttributeMap(columns), filters, loop).flatMap { taken =>
        recursive(loop, taken, columns.map { case (above, own) => own.exprId -> above.name }.toMap)
      } match {
        case Right(node) =>
          val kept = fields.filter(_.references.subsetOf(node.outputSet)) // columns that the recursion got on without
          optimized(a.copy(child = Project(kept, filters.reduceOption(And).fold(node)(Filter(_, node)))))
        case Left(why) =>
          loop.setTagValue(Refused, why)
          logInfo(s"a recursive CTE under min or max stays as it is: $why")
          a
      }
    case _ => a
  }

  /** As by the batch of the optimizer that is over: a filter on keys first sinks to the fixpoint, then on below it. */
  private def optimized(made: LogicalPlan): LogicalPlan = {
    val excluded = conf.optimizerExcludedRules.toSeq.flatMap(Utils.stringToSeq)
    val rules = PushDownPredicates +: Rules.all :+ PushDownPredicates
    rules.filterNot(rule => excluded.contains(rule.ruleName)).foldLeft(made)((plan, rule) => rule(plan))
  }

  private def extremes(a: Aggregate): Seq[AggregateExpression] =
    a.aggregateExpressions.flatMap(_.collect { case e: AggregateExpression => e })

  private def takesExtremes(a: Aggregate): Boolean = {
    val all = extremes(a)
    all.nonEmpty && all.forall(e => e.aggregateFunction.isInstanceOf[Min] || e.aggregateFunction.isInstanceOf[Max])
  }

  /**
   * What the aggregate takes of each of the loop's columns: `key`, `min`, `max`, or nothing. `columns` says which one
   * of them a column above is, `filters` are of the loop's own.
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
      val what = e.aggregateFunction.children.headOption.flatMap(column)
      what.filter(_ => e.filter.isEmpty).map(_ -> e.aggregateFunction.prettyName).toRight(
        s"${e.sql} is not of a column")
    }
    val (wrong, found) = (keys ++ values).distinct.partitionMap(identity)
    val taken = found.toMap
    def isOfKeys(filter: Expression) =
      filter.deterministic && filter.references.forall(r => taken.get(r.exprId).contains("key"))
    if (wrong.nonEmpty) Left(wrong.head)
    else if (found.length > taken.size) Left("one of its columns is taken in two ways, as key, min or max")
    else if (!filters.forall(isOfKeys)) Left("its result is filtered by more than its keys")
    else if (loop.limit.isDefined) Left("it has a LIMIT")
    else Right(taken)
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
