package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}

/**
 * What a fixpoint computes, opaque to Catalyst (its expressions belong to the loop, not to the query plan).
 *
 * Two are equal if plan, relation and the analysed step are, so that equal fixpoints canonicalise equally.
 */
class FixpointSpec(
    val planJson: String,
    val stratum: Int,
    val relation: String,
    val analysis: Analysis,
    val reason: String) {

  lazy val program: StratumSpec = PlanReader.stratum(planJson, stratum, analysis.templates)

  /** Set where ranks compute it, not this engine. */
  lazy val offload: Option[OffloadSpec] = OffloadSpec.of(planJson)

  override def equals(other: Any): Boolean = other match {
    case o: FixpointSpec =>
      (analysis eq o.analysis) && planJson == o.planJson && stratum == o.stratum && relation == o.relation
    case _ => false
  }
  override def hashCode: Int = planJson.hashCode * 31 + relation.hashCode
  override def toString: String = s"$relation (${program.name}, ${program.relationClass})"
}

/**
 * The fixpoint as a logical operator. Its inputs are real children: optimised, pruned and shown like any other plan.
 *
 * It reads every column of its children (each is a projection of what the Plan needs); without `references` Catalyst's
 * ColumnPruning would strip them.
 */
case class RecursiveAggregate(inputs: Seq[LogicalPlan], output: Seq[Attribute], spec: FixpointSpec)
    extends LogicalPlan
    with MultiInstanceRelation {

  override def children: Seq[LogicalPlan] = inputs
  override lazy val references: AttributeSet = AttributeSet.fromAttributeSets(inputs.map(_.outputSet))
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))
  override def maxRows: Option[Long] = if (spec.program.relation(spec.relation).keys.isEmpty) Some(1L) else None

  /** As many bytes as the inputs: a guess, but not Spark's default, their product. */
  override def stats: Statistics = Statistics(sizeInBytes = inputs.map(_.stats.sizeInBytes).sum.max(1))

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[LogicalPlan]): LogicalPlan =
    copy(inputs = newChildren)
  override def simpleString(maxFields: Int): String =
    s"RecursiveAggregate $spec ${output.mkString("[", ", ", "]")}"
}
