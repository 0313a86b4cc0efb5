package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Max, Min}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * A step whose result has further columns of the row that it was made from: plain DataFrames find the row before in
 * `ra.path` by them. Each operator of the step passes them on. DISTINCT is left out, and so is a groupBy with the
 * aggregate that decides which row is best: whoever reads the result takes the best rows of a key.
 */
object Carried {

  /** A step that has no such columns: with several rows before a row, or with an operator that combines rows. */
  class Refusal(val isManyParents: Boolean, message: String) extends Exception(message)

  /**
   * Returns `step` over `rows`, which have the columns of `relation`, and then a number of further ones. `order` is the
   * word `min` or `max`, or null.
   */
  def of(step: LogicalPlan, relation: String, rows: LogicalPlan, further: Int, order: String): LogicalPlan = {
    val pass = new Carried(relation, rows, rows.output.takeRight(further), order)
    val (plan, carried) = pass.through(step)
    Project(plan.output.filterNot(AttributeSet(carried).contains) ++ pass.named(carried), plan)
  }
}

private class Carried(relation: String, rows: LogicalPlan, further: Seq[Attribute], order: String) {
  import Carried.Refusal

  private type Passed = (LogicalPlan, Seq[Attribute])

  /** Returns the columns under the names that `rows` have for them; nulls if there are none. */
  def named(carried: Seq[Attribute]): Seq[NamedExpression] = further.zipWithIndex.map { case (column, n) =>
    Alias(carried.lift(n).getOrElse(Literal(null, column.dataType)), column.name)()
  }

  /** Returns the plan with the further columns, and these; none where it does not read the relation. */
  def through(plan: LogicalPlan): Passed = plan match {
    case r: RecursiveReference =>
      if (r.name != relation) throw new Refusal(true, r.name)
      val own = r.output.zip(rows.output).map { case (a, column) => Alias(column, a.name)(exprId = a.exprId) }
      val carried = named(further)
      (Project(own ++ carried, rows), carried.map(_.toAttribute))
    case p if p.exists(_.expressions.exists(readsInSubquery)) => throw new Refusal(true, s"$relation (subquery)")
    case p if !Analysis.isRecursive(p) => (p, Nil)
    case Project(list, child) => above(child)((c, carried) => Project(list ++ carried, c))
    case Distinct(child) => through(child)
    case d: Deduplicate if d.child.outputSet.subsetOf(AttributeSet(d.keys)) => through(d.child)
    case a: Aggregate => above(a.child)((c, carried) => Project(a.aggregateExpressions.map(single(a, _)) ++ carried, c))
    case j: Join => join(j)
    case u: Union =>
      val children = u.children.map(through)
      val wide = children.map { case (child, carried) =>
        Project(child.output.filterNot(AttributeSet(carried).contains) ++ named(carried), child)
      }
      val union = u.copy(children = wide)
      (union, union.output.takeRight(further.length))
    case p @ (_: Filter | _: SubqueryAlias | _: ResolvedHint | _: Sort | _: Generate | _: RepartitionOperation) =>
      above(p.children.head)((c, _) => p.withNewChildren(Seq(c)))
    case other => throw new Refusal(false, other.nodeName)
  }

  private def above(child: LogicalPlan)(make: (LogicalPlan, Seq[Attribute]) => LogicalPlan): Passed = {
    val (below, carried) = through(child)
    (make(below, carried), carried)
  }

  private def join(j: Join): Passed = {
    val (left, right) = (Analysis.isRecursive(j.left), Analysis.isRecursive(j.right))
    if (left && right) throw new Refusal(true, s"$relation (join), $relation (join)")
    j.joinType match {
      case _: InnerLike =>
      case LeftOuter | LeftSemi | LeftAnti if left =>
      case RightOuter if right =>
      case LeftSemi | LeftAnti => throw new Refusal(true, s"$relation (${j.joinType.sql} JOIN)")
      case other => throw new Refusal(false, s"${other.sql} JOIN")
    }
    if (left) above(j.left)((c, _) => j.copy(left = c)) else above(j.right)((c, _) => j.copy(right = c))
  }

  /** Returns an output of an aggregate for a single row of its group. */
  private def single(a: Aggregate, output: NamedExpression): NamedExpression = {
    def refused = new Refusal(false, s"groupBy with ${output.sql}")
    output match {
      case Alias(AggregateExpression(function, _, false, None, _), name) =>
        val value = function match {
          case Min(child) if order == "min" => child
          case Max(child) if order == "max" => child
          case _ => throw refused
        }
        Alias(value, name)(exprId = output.exprId)
      case key if a.groupingExpressions.isEmpty || key.exists(_.isInstanceOf[AggregateExpression]) => throw refused
      case key => key
    }
  }

  private def readsInSubquery(e: Expression): Boolean = e.exists {
    case s: SubqueryExpression => Analysis.isRecursive(s.plan)
    case _ => false
  }
}
