package org.apache.spark.sql.paralagg.sql

import org.apache.spark.sql.catalyst.analysis.UnresolvedLeafNode
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.paralagg.plan.RecursiveReference
import org.apache.spark.sql.types.DataType

/** The read of a relation by a branch of its own recursion, until the relation has types. */
case class RecursiveName(name: String) extends UnresolvedLeafNode

/** A column of a recursive CTE, with the type that it has in the relation. */
case class CteColumn(name: String, dataType: DataType)

/**
 * One CTE of a recursion: the number of branches that start it (`bases`) and continue it (`steps`), their positions in
 * the text, and its columns after they are resolved.
 */
case class CteRelation(
    name: String,
    columnNames: Option[Seq[String]],
    aggregates: Map[String, HeadAggregate],
    bases: Int,
    steps: Int,
    places: Seq[Origin],
    origin: Origin,
    columns: Option[Seq[CteColumn]] = None,
    usingKey: Option[UsingKey] = None,
    traces: Seq[HeadAggregate] = Nil,
    outputNames: Option[Seq[String]] = None) {

  /** The names of the result's columns, with those that no branch supplies. */
  def resultNames: Seq[String] = outputNames.getOrElse(columns.get.map(_.name) ++ traces.map(_.column))

  /** Returns this relation with the aggregates of its USING KEY clause under the `names` of its columns. */
  def withKeys(names: Seq[String]): CteRelation =
    usingKey.fold(this)(clause => copy(aggregates = clause.resolved(name, names)))

  /** Reorders `items`, one for each column of the head, in the order of the relation: keys, then aggregated columns. */
  def inOrder[A](items: Seq[A]): Seq[A] = {
    val (aggregated, keys) = columns.get.zip(items).partition { case (c, _) => aggregates.contains(c.name) }
    (keys ++ aggregated).map(_._2)
  }

  /** Returns the reference in a step, with `attributes`, one for each column of the head. */
  def reference(attributes: Seq[Attribute]): LogicalPlan = {
    val relation = RecursiveReference(name, inOrder(attributes))
    if (relation.output == attributes) relation else Project(attributes, relation)
  }

  /** Returns the position of its n-th step. */
  def placeOfStep(n: Int): Origin = places(bases + n)
}

/**
 * The CTE `target` of a recursion of one or several `relations`, between parser and analysis.
 *
 * Its children are the branches, so that Spark resolves them: the bases of all relations, then the steps of all
 * relations. `templates` are the steps before the names of typed relations were replaced. They are resolved again if a
 * type is widened.
 */
case class RecursiveCte(
    target: String,
    relations: Seq[CteRelation],
    maxDepth: Option[Int],
    branches: Seq[LogicalPlan],
    templates: Option[Seq[LogicalPlan]] = None,
    widenings: Int = 0)
    extends LogicalPlan {

  override def children: Seq[LogicalPlan] = branches
  override def output: Seq[Attribute] = Nil
  override lazy val resolved: Boolean = false // ResolveRecursion replaces it

  private def baseCount: Int = relations.map(_.bases).sum
  def allBases: Seq[LogicalPlan] = branches.take(baseCount)
  def allSteps: Seq[LogicalPlan] = branches.drop(baseCount)

  def basesOf(relation: CteRelation): Seq[LogicalPlan] = slice(allBases, relation, _.bases)
  def stepsOf(relation: CteRelation): Seq[LogicalPlan] = slice(allSteps, relation, _.steps)

  private def slice(all: Seq[LogicalPlan], relation: CteRelation, count: CteRelation => Int): Seq[LogicalPlan] = {
    val before = relations.takeWhile(_.name != relation.name).map(count).sum
    all.slice(before, before + count(relation))
  }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[LogicalPlan]): LogicalPlan =
    copy(branches = newChildren)
  override def simpleString(maxFields: Int): String = s"RecursiveCte $target of ${relations.map(_.name).mkString(", ")}"
}
