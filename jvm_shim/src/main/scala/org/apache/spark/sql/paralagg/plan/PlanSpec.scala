package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.DataType

// The fields of the Plan (pyspark_paralagg/plan/plan.py), with relations by position.

case class ColumnSpec(name: String, dataType: DataType, nullable: Boolean)

/**
 * A dependent column. `order` is the position of the column that min_by and max_by compare, else -1. All columns of a
 * user's aggregator have it as `custom`, with their positions in it as `part`.
 */
case class DependentSpec(
    column: ColumnSpec,
    aggregator: String,
    order: Int,
    view: Option[ViewSpec] = None,
    custom: Option[CustomSpec] = None,
    part: Int = 0) {

  private[paralagg] val merging: Aggregator = Aggregator.of(aggregator, custom.isDefined)
  def isSum: Boolean = merging.merge == Merge.Sum
  def isCarried: Boolean = merging.merge == Merge.Carried
}

/** A column that follows another relation of the stratum: its number of rows (-1), or its dependent `column`. */
case class ViewSpec(relation: Int, column: Int)

/** A user's aggregator: expressions over `old.c` and `new.c`, one `combine` a column. */
case class CustomSpec(
    name: String, columns: Array[String], combine: Array[Expression], improves: Option[Expression])

case class RelationSpec(
    name: String,
    keys: Array[ColumnSpec],
    dependents: Array[DependentSpec],
    distributeBy: Array[Int],
    base: Int,
    initial: Option[Int],
    settled: Boolean) {
  def columns: Array[ColumnSpec] = keys ++ dependents.map(_.column)

  /** Tests whether the rows follow other relations of the stratum; then no rule derives them. */
  def isView: Boolean = dependents.exists(_.view.isDefined)
}

/**
 * An input grouped by `keys`. `read` are the positions of the payload that the loop reads, `alignedTo` is the relation
 * whose ids are the groups, `sortedBy` the rule whose targets order the rows of a group.
 */
case class StaticIndexSpec(
    id: Int,
    input: Int,
    keys: Array[Int],
    payload: Array[Int],
    everywhere: Boolean,
    partitionBy: Array[Int],
    read: Array[Int],
    alignedTo: Option[Int],
    sortedBy: Option[Int])

case class RelationIndexSpec(id: Int, relation: Int, keys: Array[Int], everywhere: Boolean, copy: Boolean)

/** The relation that a rule starts from. `binds` is null for columns that the rule does not read; `index` may be -1. */
case class DriverSpec(relation: Int, binds: Array[String], index: Int)

sealed trait StepSpec

case class ProbeSpec(
    index: Int,
    kind: String,
    keys: Array[Expression],
    binds: Array[String],
    recursive: Boolean,
    old: Boolean,
    aligned: Boolean)
    extends StepSpec

case class FilterSpec(condition: Expression) extends StepSpec

/** The target of a rule. If `local`, the task of the driver's row owns it. */
case class TargetSpec(kind: String, step: Int, payload: Array[Int], local: Boolean)

/** A rule; `reads` are the variables that the loop evaluates. */
case class RuleSpec(
    head: Int,
    driver: DriverSpec,
    steps: Array[StepSpec],
    emit: Array[Expression],
    target: TargetSpec,
    reads: Set[String]) {

  /** Returns the probe whose rows determine the targets of a resolved rule. */
  def resolvingProbe: ProbeSpec = steps(target.step).asInstanceOf[ProbeSpec]

  /** Returns all expressions of the rule, in the Plan's order. */
  def expressions: Seq[Expression] = steps.toSeq.flatMap {
    case p: ProbeSpec => p.keys.toSeq
    case f: FilterSpec => Seq(f.condition)
  } ++ emit
}

case class BitmapSpec(moving: Int, edges: Array[Int])

/** An input: `exprs` and `filters` over RuleVariables, which `columns` names for the source's columns, by position. */
case class InputSpec(id: Int, source: Int, columns: Array[String], exprs: Array[Expression],
    filters: Array[Expression])

case class StratumSpec(
    name: String,
    inputs: Array[InputSpec],
    relations: Array[RelationSpec],
    staticIndexes: Array[StaticIndexSpec],
    relationIndexes: Array[RelationIndexSpec],
    rules: Array[RuleSpec],
    relationClass: String,
    inPlace: Boolean,
    cycleCheck: Boolean,
    makesStrings: Boolean,
    bitmap: Option[BitmapSpec],
    maxIterations: Option[Int],
    onLimitError: Boolean,
    tolerance: Option[Double],
    carried: Array[Array[Int]],
    climbLimit: Option[Int]) {
  def relation(name: String): RelationSpec = relations.find(_.name == name).get
  def input(id: Int): InputSpec = inputs.find(_.id == id).get
  def staticIndex(id: Int): StaticIndexSpec = staticIndexes.find(_.id == id).get
  def relationIndex(id: Int): RelationIndexSpec = relationIndexes.find(_.id == id).get

  /** Returns the column of key `k` of a resolved rule's head in the blocks of the index that resolves it. */
  def targetColumn(rule: RuleSpec, k: Int): Int =
    staticIndex(rule.resolvingProbe.index).keys.length + rule.target.payload(k)

  /** Returns all expressions of the loop, in the Plan's order. */
  def expressions: Seq[Expression] =
    rules.toSeq.flatMap(_.expressions) ++ relations.toSeq.flatMap(_.dependents).flatMap(_.custom).flatMap(c =>
      c.combine ++ c.improves)

  /** Tests whether another relation follows this one. */
  def isViewed(relation: Int): Boolean = relations.exists(_.dependents.exists(_.view.exists(_.relation == relation)))
  def isLattice: Boolean = relationClass == "lattice"
  def isAccumulating: Boolean = relationClass == "accumulating"
  def isIterated: Boolean = relationClass == "iterated"
}
