package org.apache.spark.sql.paralagg.plan

import org.json4s.JValue

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.paralagg.plan.PlanReader._
import org.apache.spark.sql.types.DataType

// The fields of the Plan (pyspark_paralagg/plan/plan.py), read from its JSON, with relations by position. Tasks get them
// without the JSON, so a reader that lambdas capture is transient.

final class ColumnSpec(json: JValue) extends Serializable {
  val name: String = text(json \ "name")
  val dataType: DataType = PlanReader.dataType(json \ "type")
  val nullable: Boolean = bool(json \ "nullable")

  /** The user's type, if the engine stores texts of [[Packed]]. */
  val packed: Option[DataType] = option(json \ "packed")(PlanReader.dataType)
}

/**
 * A dependent column. `order` is the position of the column that min_by and max_by compare, else -1. All columns of a
 * user's aggregator have it as `custom`, with their positions in it as `part`.
 */
final class DependentSpec(json: JValue, relation: Int, @transient reader: PlanReader) extends Serializable {
  val column: ColumnSpec = new ColumnSpec(json \ "column")
  val aggregator: String = text(json \ "aggregator")
  val order: Int = reader.dependent(relation, json \ "order")
  val view: Option[ViewSpec] = option(json \ "view")(new ViewSpec(_, reader))
  val custom: Option[CustomSpec] = option(json \ "custom")(new CustomSpec(_, reader))
  val part: Int = int(json \ "part")

  private[paralagg] val merging: Aggregator = Aggregator.of(aggregator, custom.isDefined)
  def isSum: Boolean = merging.merge == Merge.Sum
  def isCarried: Boolean = merging.merge == Merge.Carried
}

/**
 * A column that follows another relation of the stratum: its number of rows (-1), or its dependent `column`. `total` is
 * the dependent with the number of witnesses (`h_index`), else -1.
 */
final class ViewSpec(json: JValue, reader: PlanReader) extends Serializable {
  val relation: Int = reader.relation(json \ "relation")
  val column: Int = reader.dependent(relation, json \ "column")
  val total: Int = reader.dependent(relation, json \ "total")
}

/** A user's aggregator: expressions over `old.c` and `new.c`, one `combine` a column. */
final class CustomSpec(json: JValue, @transient reader: PlanReader) extends Serializable {
  val name: String = text(json \ "name")
  val columns: Array[String] = texts(json \ "columns")
  val combine: Array[Expression] = reader.expressions(json \ "combine")
  val improves: Option[Expression] = option(json \ "improves")(reader.expression)
}

final class RelationSpec(json: JValue, index: Int, @transient reader: PlanReader) extends Serializable {
  val name: String = text(json \ "name")
  val keys: Array[ColumnSpec] = array(json \ "keys")(new ColumnSpec(_))
  val dependents: Array[DependentSpec] = array(json \ "dependents")(new DependentSpec(_, index, reader))
  val distributeBy: Array[Int] = ints(json \ "distribute_by")
  val base: Int = int(json \ "base")
  val initial: Option[Int] = option(json \ "initial")(int)
  val settled: Boolean = bool(json \ "settled")
  def columns: Array[ColumnSpec] = keys ++ dependents.map(_.column)

  /** Tests whether the rows follow other relations of the stratum; then no rule derives them. */
  def isView: Boolean = dependents.exists(_.view.isDefined)
}

/**
 * An input grouped by `keys`. `read` are the positions of the payload that the loop reads, `alignedTo` is the relation
 * whose ids are the groups, `sortedBy` the rule whose targets order the rows of a group. `removed` is the input of the
 * rows that a kept state loses.
 */
final class StaticIndexSpec(json: JValue, @transient reader: PlanReader) extends Serializable {
  val id: Int = int(json \ "id")
  val input: Int = int(json \ "input")
  val keys: Array[Int] = ints(json \ "keys")
  val payload: Array[Int] = ints(json \ "payload")
  val everywhere: Boolean = text(json \ "placement") == "everywhere"
  val partitionBy: Array[Int] = ints(json \ "partition_by")
  val read: Array[Int] = ints(json \ "read")
  val alignedTo: Option[Int] = option(json \ "aligned_to")(reader.relation)
  val sortedBy: Option[Int] = option(json \ "sorted_by")(int)
  val removed: Option[Int] = option(json \ "removed")(int)

  /** Tests whether the index is the same in all tasks, so that an executor has it once. */
  def isShared: Boolean = everywhere && alignedTo.isEmpty
}

final class RelationIndexSpec(json: JValue, reader: PlanReader) extends Serializable {
  val id: Int = int(json \ "id")
  val relation: Int = reader.relation(json \ "relation")
  val keys: Array[Int] = ints(json \ "keys")
  val everywhere: Boolean = text(json \ "placement") == "everywhere"
  val copy: Boolean = bool(json \ "copy")
}

/** The relation that a rule starts from. `binds` is null for columns that the rule does not read; `index` may be -1. */
final class DriverSpec(json: JValue, reader: PlanReader) extends Serializable {
  val relation: Int = reader.relation(json \ "relation")
  val binds: Array[String] = texts(json \ "binds")
  val index: Int = option(json \ "index")(int).getOrElse(-1)
}

sealed trait StepSpec

final class ProbeSpec(json: JValue, reader: PlanReader) extends StepSpec with Serializable {
  val index: Int = int(json \ "index")
  val kind: String = text(json \ "kind")
  val keys: Array[Expression] = reader.expressions(json \ "keys")
  val binds: Array[String] = texts(json \ "binds")
  val recursive: Boolean = bool(json \ "recursive")
  val old: Boolean = text(json \ "version") == "old"
  val aligned: Boolean = bool(json \ "aligned")
}

case class FilterSpec(condition: Expression) extends StepSpec

/** The target of a rule. If `local`, the task of the driver's row owns it. */
final class TargetSpec(json: JValue) extends Serializable {
  val kind: String = text(json \ "kind")
  val step: Int = option(json \ "step")(int).getOrElse(-1)
  val payload: Array[Int] = ints(json \ "payload")
  val local: Boolean = bool(json \ "local")

  /** The rule computes the key, which is looked up in the loop. */
  def isComputed: Boolean = kind != "same" && kind != "resolved"
}

/** A rule; `reads` are the variables that the loop evaluates. `addsByTarget`: see `state.TargetSums`. */
final class RuleSpec(json: JValue, @transient reader: PlanReader) extends Serializable {
  val head: Int = reader.relation(json \ "head")
  val driver: DriverSpec = new DriverSpec(json \ "driver", reader)
  val steps: Array[StepSpec] = array[StepSpec](json \ "steps") { s =>
    if (text(s \ "op") == "filter") FilterSpec(reader.expression(s \ "condition")) else new ProbeSpec(s, reader)
  }
  val emit: Array[Expression] = reader.expressions(json \ "emit")
  val target: TargetSpec = new TargetSpec(json \ "target")
  val reads: Set[String] = texts(json \ "reads").toSet
  val addsByTarget: Boolean = bool(json \ "adds_by_target")

  def probes: Array[ProbeSpec] = steps.collect { case p: ProbeSpec => p }

  /** Returns the probe whose rows determine the targets of a resolved rule. */
  def resolvingProbe: ProbeSpec = steps(target.step).asInstanceOf[ProbeSpec]

  /** Tests whether a row of one static index determines both the driver's row and the target. */
  def isAlongRows: Boolean = target.kind == "resolved" && resolvingProbe.aligned

  /** Returns all expressions of the rule, in the Plan's order. */
  def expressions: Seq[Expression] = steps.toSeq.flatMap {
    case p: ProbeSpec => p.keys.toSeq
    case f: FilterSpec => Seq(f.condition)
  } ++ emit
}

/** The stratum without its `carried` keys (positions in the relation), for one value of these at a time. */
final class DecompositionSpec(plan: JValue, json: JValue, @transient reader: PlanReader) extends Serializable {
  val carried: Array[Int] = ints(json \ "carried")
  val stratum: StratumSpec = new StratumSpec(plan, json \ "stratum", reader.of(json \ "stratum"))
}

/** The stratum with indexes for the edges of hubs, by the index that they are moved from, and a `copy` of the hubs. */
final class HubsSpec(plan: JValue, json: JValue, @transient reader: PlanReader) extends Serializable {
  val copy: Int = int(json \ "copy")
  val edges: Array[(Int, Int)] = array(json \ "edges")(e => (int(e \ "edges"), int(e \ "of_hubs")))
  val stratum: StratumSpec = new StratumSpec(plan, json \ "stratum", reader.of(json \ "stratum"))
}

case class BitmapSpec(moving: Int, edges: Array[Int])

/** The form with rows of bits: the position of the carried key in each relation, and where bits go. */
case class BitRowsSpec(carried: Array[Int], flows: Array[FlowSpec])

/** Edges along which bits go (the Plan's `Flow`): relations, the index (-1: none), and what names the ends of an edge. */
case class FlowSpec(
    head: Int, source: Int, reads: Int, index: Int, found: Int, key: Int, origin: Int, target: Int)

object FlowSpec {
  val Row = 0
  val Carried = 1
  val Found = 2

  def of(json: JValue, reader: PlanReader): FlowSpec = {
    def end(field: String): Int = option(json \ field)(text).fold(-1)(Seq("row", "carried", "found").indexOf(_))
    def number(field: String): Int = option(json \ field)(int).getOrElse(-1)
    FlowSpec(
      reader.relation(json \ "head"), reader.relation(json \ "source"),
      option(json \ "reads")(reader.relation).getOrElse(-1), number("index"), number("found"), end("key"),
      end("origin"), end("target"))
  }
}

/** An input: `exprs` and `filters` over RuleVariables, which `columns` names for the source's columns, by position. */
final class InputSpec(json: JValue, reader: PlanReader) extends Serializable {
  val id: Int = int(json \ "id")
  val source: Int = int(json \ "source")
  val columns: Array[String] = array(json \ "columns")(c => text(c \ "name"))
  val exprs: Array[Expression] = reader.expressions(json \ "exprs")
  val filters: Array[Expression] = reader.expressions(json \ "filters")
}

/** A stratum of the Plan `plan`, with the inputs that it reads. */
final class StratumSpec(plan: JValue, json: JValue, @transient reader: PlanReader) extends Serializable {
  val name: String = text(plan \ "name")
  val relations: Array[RelationSpec] =
    list(json \ "relations").zipWithIndex.map { case (r, at) => new RelationSpec(r, at, reader) }.toArray
  val staticIndexes: Array[StaticIndexSpec] = array(json \ "static_indexes")(new StaticIndexSpec(_, reader))
  val inputs: Array[InputSpec] = {
    val used = relations.flatMap(r => r.base +: r.initial.toSeq).toSet ++
      staticIndexes.flatMap(i => i.input +: i.removed.toSeq)
    array(plan \ "inputs")(new InputSpec(_, reader)).filter(i => used(i.id))
  }
  val relationIndexes: Array[RelationIndexSpec] = array(json \ "relation_indexes")(new RelationIndexSpec(_, reader))
  val rules: Array[RuleSpec] = array(json \ "rules")(new RuleSpec(_, reader))
  val relationClass: String = text(json \ "relation_class")
  val inPlace: Boolean = bool(json \ "in_place")
  val cycleCheck: Boolean = bool(json \ "cycle_check")
  val makesStrings: Boolean = bool(json \ "makes_strings")

  /** Strings get words when they appear, so words are not in the order of the strings. */
  val comparesStrings: Boolean = makesStrings || bool(json \ "appends_strings")
  val bitmap: Option[BitmapSpec] = option(json \ "bitmap")(b => BitmapSpec(int(b \ "moving"), ints(b \ "edges")))

  val bitRows: Option[BitRowsSpec] = option(json \ "bit_rows") { b =>
    BitRowsSpec(ints(b \ "carried"), array(b \ "flows")(FlowSpec.of(_, reader)))
  }

  /** The position of the dependent column by whose values rows may be ordered, else -1; rules may only copy it. */
  val orderedBy: Int = option(json \ "ordered_by")(int).getOrElse(-1)
  val copiesOrder: Boolean = bool(json \ "copies_order")
  val decomposition: Option[DecompositionSpec] =
    option(json \ "decomposition")(new DecompositionSpec(plan, _, reader))
  val hubs: Option[HubsSpec] = option(json \ "hubs")(new HubsSpec(plan, _, reader))
  val maxIterations: Option[Int] = option(json \ "max_iterations")(int)
  val onLimitError: Boolean = text(json \ "on_limit") == "error"

  /** The number of rows after which a query needs no more. */
  val endsAt: Option[Int] = option(json \ "ends_at")(int)
  val tolerance: Option[Double] = option(json \ "tolerance")(number)
  val carried: Array[Array[Int]] = array(json \ "carried")(ints)
  val climbLimit: Option[Int] = option(json \ "climb_limit")(int)
  val sentEarly: Array[Int] = array(json \ "sent_early")(reader.relation)
  val keepsState: Boolean = bool(json \ "keeps_state")
  val keepsIndexes: Boolean = bool(json \ "keeps_indexes")

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

  /** Tests for a set alone in its stratum, all of whose rows are results. */
  def isSet: Boolean =
    isLattice && relations.length == 1 && relations.head.dependents.isEmpty && !relations.head.settled
  def isLattice: Boolean = relationClass == "lattice"
  def isAccumulating: Boolean = relationClass == "accumulating"
  def isIterated: Boolean = relationClass == "iterated"
}
