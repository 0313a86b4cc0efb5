package org.apache.spark.sql.paralagg.plan

import scala.collection.mutable

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.classic.SparkSession

/** The plan of the relation `name`, which a query reads several times; equal only to itself. */
final class SharedPlan(val name: String, val session: SparkSession, val analyzed: LogicalPlan)

/**
 * The rows of a plan as a leaf: Catalyst neither copies nor changes the plan, and a query computes it once.
 *
 * Plans of Spark are trees. A text of many relations, each read by several rules, would have a plan with a node for
 * each way from its result to an input. Nothing is pushed through this leaf, so small plans do better without it.
 */
case class SharedRows(output: Seq[Attribute], shared: SharedPlan) extends LeafNode with MultiInstanceRelation {
  override def newInstance(): SharedRows = copy(output = output.map(_.newInstance()))

  /** A join has the product of its sides' sizes, so sizes of relations above one another have ever more digits. */
  override def computeStats(): Statistics = Statistics(shared.analyzed.stats.sizeInBytes.min(Long.MaxValue))
  override def simpleString(maxFields: Int): String = s"SharedRows ${shared.name} ${output.mkString("[", ", ", "]")}"
}

object SharedRows {

  /** Returns the relation's `plan` as a leaf, if more than `most` operators would stand repeated in a query's plan. */
  def of(session: SparkSession, name: String, plan: LogicalPlan, readers: Int, most: Int): Option[SharedRows] = {
    val operators = plan.collect { case operator => operator }
    // A step is compiled with its references, and tables that stand for others are replaced.
    val isOpen = plan.collectWithSubqueries { case reference: RecursiveReference => reference }.nonEmpty
    if (isOpen || operators.length.toLong * (readers - 1) <= most) None
    else Some(SharedRows(plan.output.map(_.newInstance()), new SharedPlan(name, session, plan)))
  }

  /** Returns a plan and those that it shares at any depth, each once. */
  def all(plan: LogicalPlan): Seq[LogicalPlan] = {
    val found = mutable.LinkedHashSet.empty[SharedPlan]
    def visit(p: LogicalPlan): Unit =
      p.collectWithSubqueries { case rows: SharedRows => rows.shared }.filter(found.add).foreach(s => visit(s.analyzed))
    visit(plan)
    plan +: found.toSeq.map(_.analyzed)
  }

  /** Returns what `pick` finds in a plan and its subqueries, or else in the plans that it shares. */
  def find[T](plan: LogicalPlan)(pick: PartialFunction[LogicalPlan, T]): Option[T] =
    all(plan).flatMap(_.collectWithSubqueries(pick)).headOption
}
