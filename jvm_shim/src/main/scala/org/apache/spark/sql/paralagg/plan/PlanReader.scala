package org.apache.spark.sql.paralagg.plan

import org.json4s._

import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, Literal}
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.types.DataType

/**
 * The reader of Plan JSON (`Plan.to_json`). It rebuilds a call from the analysed expression of its handle, so the call
 * means exactly what Spark's analyser decided.
 */
object PlanReader {
  val Version = 7

  def stratum(plan: JValue, position: Int, templates: IndexedSeq[Expression]): StratumSpec = {
    if (int(plan \ "version") != Version) {
      throw new ParalaggException(
        ErrorCodes.ShimMismatch,
        s"the plan has schema version ${int(plan \ "version")}, this jar reads $Version.",
        "install the jar of the Python package's version (ra.doctor() names it).")
    }
    new PlanReader(templates).stratum(plan, list(plan \ "strata")(position))
  }

  /** Reads the smaller forms of a stratum for one of its relations. */
  def narrower(plan: JValue, position: Int, relation: String): Seq[NarrowerSpec] =
    list(plan \ "narrower").filter(n => int(n \ "position") == position && text(n \ "relation") == relation).map { n =>
      NarrowerSpec(
        list(n \ "columns").map(text).toSet,
        n \ "stratum",
        n \ "inputs",
        list(n \ "slices").map(s => (int(s \ "input"), ints(s \ "columns").toSeq)),
        option(n \ "offload")(identity))
    }

  private[paralagg] def list(value: JValue): List[JValue] = value match {
    case JArray(items) => items
    case _ => Nil
  }
  private[paralagg] def int(value: JValue): Int = option(value)(v => v.asInstanceOf[JInt].num.toInt).get
  private[paralagg] def text(value: JValue): String = value match {
    case JString(s) => s
    case _ => null
  }
  private[plan] def bool(value: JValue): Boolean = value == JBool(true)
  private[plan] def ints(value: JValue): Array[Int] = list(value).map(int).toArray
  private[paralagg] def option[T](value: JValue)(read: JValue => T): Option[T] = value match {
    case JNull | JNothing => None
    case v => Some(read(v))
  }
}

private class PlanReader(templates: IndexedSeq[Expression]) {
  import PlanReader._

  def stratum(plan: JValue, json: JValue): StratumSpec = {
    val names = list(json \ "relations").map(r => text(r \ "name"))
    def relationAt(name: JValue): Int = names.indexOf(text(name))
    val dependentNames = list(json \ "relations").map { r =>
      text(r \ "name") -> list(r \ "dependents").map(d => text(d \ "column" \ "name"))
    }.toMap
    def view(json: JValue): ViewSpec = {
      val name = text(json \ "relation")
      ViewSpec(names.indexOf(name), dependentNames(name).indexOf(text(json \ "column")))
    }
    val relations = list(json \ "relations").map(relation(_, view)).toArray
    val statics = list(json \ "static_indexes").map { i =>
      StaticIndexSpec(
        int(i \ "id"),
        int(i \ "input"),
        ints(i \ "keys"),
        ints(i \ "payload"),
        text(i \ "placement") == "everywhere",
        ints(i \ "partition_by"),
        ints(i \ "read"),
        option(i \ "aligned_to")(relationAt),
        option(i \ "sorted_by")(int))
    }.toArray
    val used = relations.flatMap(r => r.base +: r.initial.toSeq).toSet ++ statics.map(_.input)
    StratumSpec(
      text(plan \ "name"),
      list(plan \ "inputs").map(input).filter(i => used(i.id)).toArray,
      relations,
      statics,
      list(json \ "relation_indexes").map { i =>
        RelationIndexSpec(
          int(i \ "id"),
          relationAt(i \ "relation"),
          ints(i \ "keys"),
          text(i \ "placement") == "everywhere",
          bool(i \ "copy"))
      }.toArray,
      list(json \ "rules").map(rule(_, relationAt)).toArray,
      text(json \ "relation_class"),
      bool(json \ "in_place"),
      bool(json \ "cycle_check"),
      bool(json \ "makes_strings"),
      option(json \ "bitmap")(b => BitmapSpec(int(b \ "moving"), ints(b \ "edges"))),
      option(json \ "max_iterations")(int),
      text(json \ "on_limit") == "error",
      option(json \ "tolerance") {
        case JDouble(d) => d
        case JInt(i) => i.toDouble
        case other => throw new IllegalArgumentException(s"tolerance $other")
      },
      list(json \ "carried").map(ints).toArray,
      option(json \ "climb_limit")(int))
  }

  private def column(json: JValue): ColumnSpec =
    ColumnSpec(text(json \ "name"), dataType(json \ "type"), bool(json \ "nullable"))

  private def relation(json: JValue, view: JValue => ViewSpec): RelationSpec = {
    val dependents = list(json \ "dependents")
    val names = dependents.map(d => text(d \ "column" \ "name"))
    RelationSpec(
      text(json \ "name"),
      list(json \ "keys").map(column).toArray,
      dependents
        .map { d =>
          DependentSpec(
            column(d \ "column"),
            text(d \ "aggregator"),
            names.indexOf(text(d \ "order")),
            option(d \ "view")(view),
            option(d \ "custom")(custom),
            option(d \ "part")(int).getOrElse(0))
        }
        .toArray,
      ints(json \ "distribute_by"),
      int(json \ "base"),
      option(json \ "initial")(int),
      bool(json \ "settled"))
  }

  private def custom(json: JValue): CustomSpec =
    CustomSpec(
      text(json \ "name"),
      list(json \ "columns").map(text).toArray,
      expressions(json \ "combine"),
      option(json \ "improves")(expression))

  private def input(json: JValue): InputSpec =
    InputSpec(
      int(json \ "id"),
      int(json \ "source"),
      list(json \ "columns").map(c => text(c \ "name")).toArray,
      expressions(json \ "exprs"),
      expressions(json \ "filters"))

  private def rule(json: JValue, relationAt: JValue => Int): RuleSpec = {
    val driver = json \ "driver"
    val target = json \ "target"
    RuleSpec(
      relationAt(json \ "head"),
      DriverSpec(
        relationAt(driver \ "relation"),
        list(driver \ "binds").map(text).toArray,
        option(driver \ "index")(int).getOrElse(-1)),
      list(json \ "steps").map { s =>
        if (text(s \ "op") == "filter") FilterSpec(expression(s \ "condition"))
        else {
          ProbeSpec(
            int(s \ "index"),
            text(s \ "kind"),
            expressions(s \ "keys"),
            list(s \ "binds").map(text).toArray,
            bool(s \ "recursive"),
            text(s \ "version") == "old",
            bool(s \ "aligned"))
        }
      }.toArray,
      expressions(json \ "emit"),
      TargetSpec(
        text(target \ "kind"),
        option(target \ "step")(int).getOrElse(-1),
        ints(target \ "payload"),
        bool(target \ "local")),
      list(json \ "reads").map(text).toSet)
  }

  private def expressions(json: JValue): Array[Expression] = list(json).map(expression).toArray

  private def expression(json: JValue): Expression = {
    val handle = option(json \ "handle")(int)
    if ((json \ "col") != JNothing) RuleVariable(text(json \ "col"), dataType(json \ "type"), bool(json \ "nullable"))
    else if ((json \ "lit") != JNothing) handle.map(templates).getOrElse(literal(json \ "lit", dataType(json \ "type")))
    else {
      val args = list(json \ "args").map(expression)
      val call = handle.map(templates(_).withNewChildren(args)).getOrElse(text(json \ "fn") match {
        case "Cast" => Cast(args.head, dataType(json \ "type"))
        case "Between" => Guards.between(args(0), args(1), args(2), args(3))
        case "Present" => Guards.present(args(0), args(1))
        case other => throw new IllegalArgumentException(s"no Catalyst expression for $other")
      })
      if (bool(json \ "checked")) Guards.failingOnOverflow(call) else call
    }
  }

  /** Builds a constant of the compiler from a number, a string or a boolean. */
  private def literal(value: JValue, dataType: DataType): Expression = {
    val constant = value match {
      case JInt(i) => Literal(i.toLong)
      case JDouble(d) => Literal(d)
      case JBool(b) => Literal(b)
      case JString(s) => Literal(s)
      case _ => Literal(null, dataType)
    }
    if (constant.dataType == dataType) constant else Literal(Cast(constant, dataType).eval(), dataType)
  }

  private def dataType(json: JValue): DataType = DataType.fromDDL(text(json))
}
