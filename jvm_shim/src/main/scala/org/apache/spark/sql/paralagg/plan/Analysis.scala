package org.apache.spark.sql.paralagg.plan

import scala.collection.mutable.ArrayBuffer

import org.json4s._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.optimizer.{ComputeCurrentTime, ReplaceExpressions}
import org.apache.spark.sql.catalyst.plans.{JoinType, LeftAnti, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Analysed steps as Step JSON (described in pyspark_paralagg/program/step.py), with what JSON cannot carry beside it:
 * the Catalyst expression behind each `handle`, and the plans of the sources (maximal sub-plans without a recursive
 * reference).
 */
class Analysis(names: Seq[String], steps: Seq[LogicalPlan]) {
  private val handles = ArrayBuffer.empty[Expression]
  private val sourcePlans = ArrayBuffer.empty[LogicalPlan]
  private val ids = scala.collection.mutable.Map.empty[ExprId, Int]

  private val stepsJson: JValue = JArray(names.zip(steps.map(Analysis.prepare)).map { case (name, plan) =>
    ("name" -> name) ~ ("columns" -> references(plan.output)) ~ ("plan" -> node(plan)): JValue
  }.toList)

  def templates: IndexedSeq[Expression] = handles.toIndexedSeq
  def sources: IndexedSeq[LogicalPlan] = sourcePlans.toIndexedSeq

  def json(): String = JsonMethods.compact(toJson)

  def toJson: JValue = {
    val sourcesJson = sourcePlans.zipWithIndex.map { case (plan, id) =>
      ("id" -> id) ~ ("columns" -> references(plan.output)) ~ ("size" -> plan.stats.sizeInBytes) ~
        ("name" -> Analysis.nameOf(plan)): JValue
    }
    val conf = SQLConf.get
    ("steps" -> stepsJson) ~ ("sources" -> JArray(sourcesJson.toList)) ~
      ("setting" -> (("ansi" -> conf.ansiEnabled) ~ ("time_zone" -> conf.sessionLocalTimeZone)))
  }

  private def node(plan: LogicalPlan): JValue = plan match {
    case r: RecursiveReference => ("op" -> "relation") ~ ("name" -> r.name) ~ ("columns" -> references(r.output))
    case p if !Analysis.isRecursive(p) =>
      ("op" -> "input") ~ ("source" -> source(p)) ~ ("columns" -> references(p.output))
    case Project(list, child) => ("op" -> "project") ~ ("child" -> node(child)) ~ ("exprs" -> named(list))
    case Filter(condition, child) =>
      ("op" -> "filter") ~ ("child" -> node(child)) ~ ("condition" -> expression(condition))
    case Join(left, right, joinType, condition, _) =>
      val asked = joinType match {
        case LeftSemi | LeftAnti => condition.map(Analysis.nullsApart)
        case _ => condition
      }
      ("op" -> "join") ~ ("type" -> joinType.sql.toLowerCase(java.util.Locale.ROOT).replace(" ", "")) ~
        ("left" -> node(left)) ~ ("right" -> node(right)) ~ ("condition" -> asked.map(expression))
    case Intersect(left, right, false) => node(Analysis.matching(left, right, LeftSemi))
    case Except(left, right, false) => node(Analysis.matching(left, right, LeftAnti))
    case u: Union =>
      ("op" -> "union") ~ ("children" -> JArray(u.children.map(node).toList)) ~ ("columns" -> references(u.output)) ~
        ("child_columns" -> JArray(u.children.map(c => JArray(c.output.map(a => JString(id(a))).toList)).toList))
    case Distinct(child) => ("op" -> "distinct") ~ ("child" -> node(child))
    case Deduplicate(keys, child) if child.outputSet.subsetOf(AttributeSet(keys)) =>
      ("op" -> "distinct") ~ ("child" -> node(child))
    case a: Aggregate =>
      ("op" -> "aggregate") ~ ("child" -> node(a.child)) ~
        ("keys" -> JArray(a.groupingExpressions.map(expression).toList)) ~ ("outputs" -> named(a.aggregateExpressions))
    case h: ResolvedHint => node(h.child)
    case other =>
      ("op" -> "unsupported") ~ ("name" -> other.nodeName) ~ ("children" -> JArray(other.children.map(node).toList))
  }

  /** A source read twice is loaded once: equal plans share an id, and are told apart by their columns' ids. */
  private def source(plan: LogicalPlan): Int = {
    val known = sourcePlans.indexWhere(s => s.output.length == plan.output.length && s.sameResult(plan))
    if (known >= 0) known
    else {
      sourcePlans += plan
      sourcePlans.length - 1
    }
  }

  private def references(attributes: Seq[Attribute]): JValue = JArray(attributes.map { a =>
    ("col" -> id(a)) ~ ("name" -> a.name) ~ ("type" -> Analysis.typeName(
      a.dataType)) ~ ("nullable" -> a.nullable): JValue
  }.toList)

  private def named(list: Seq[NamedExpression]): JValue = JArray(list.map { e =>
    val body = e match {
      case Alias(child, _) => child
      case other => other
    }
    ("col" -> id(e)) ~ ("name" -> e.name) ~ ("expr" -> expression(body)): JValue
  }.toList)

  /** Columns are numbered as they come, not by Spark's running numbers: equal steps say the same text. */
  private def id(e: NamedExpression): String = s"c${ids.getOrElseUpdate(e.exprId, ids.size)}"

  private def expression(e: Expression): JValue = e match {
    case Alias(child, _) => expression(child)
    case r: RuntimeReplaceable => expression(r.replacement)
    case a: Attribute => ("col" -> id(a)) ~ ("type" -> Analysis.typeName(a.dataType)) ~ ("nullable" -> a.nullable)
    case l: Literal =>
      ("lit" -> Analysis.constant(l)) ~ ("type" -> Analysis.typeName(l.dataType)) ~ ("handle" -> handle(l))
    case a: AggregateExpression =>
      val function = a.aggregateFunction match {
        case r: RuntimeReplaceable => r.replacement
        case f => f
      }
      val plain = s"agg:${function.prettyName}" + (if (a.isDistinct) ":distinct" else "")
      call(e, if (a.filter.isEmpty) plain else s"$plain:filter", function.children, runs = false)
    case in: InSubquery => // whose ListQuery Spark asks for nothing before it is rewritten
      ("fn" -> "IN (subquery)") ~ ("args" -> JArray(in.values.map(expression).toList)) ~ ("type" -> "boolean") ~
        ("nullable" -> true) ~ ("handle" -> handle(in)) ~ ("deterministic" -> true) ~ ("codegen" -> false)
    case _: PythonUDF => call(e, "PythonUDF", e.children, runs = false)
    case _ => call(e, Analysis.functionName(e), e.children, Analysis.generatesCode(e))
  }

  private def call(e: Expression, name: String, args: Seq[Expression], runs: Boolean): JValue =
    ("fn" -> name) ~ ("args" -> JArray(args.map(expression).toList)) ~ ("type" -> Analysis.typeName(e.dataType)) ~
      ("nullable" -> e.nullable) ~ ("handle" -> handle(e)) ~
      ("deterministic" -> (e.deterministic || !args.forall(_.deterministic))) ~ ("codegen" -> runs)

  private def handle(e: Expression): Int = {
    handles += e
    handles.length - 1
  }
}

object Analysis {

  /** As Python has it; `simpleString` leaves out fields of wide structs. */
  private def typeName(dataType: DataType): String = dataType match {
    case udt: UserDefinedType[_] => udt.simpleString
    case other => other.catalogString
  }

  /** What the user calls a plan: the name of a table, a view or `alias("…")`. */
  private val Name = TreeNodeTag[String]("paralagg.name")

  /** The step without aliases, with the functions that Spark itself replaces before it runs anything. */
  private def prepare(plan: LogicalPlan): LogicalPlan = {
    plan.foreach {
      case a: SubqueryAlias => a.child.setTagValue(Name, a.alias)
      case _ =>
    }
    inlined(ComputeCurrentTime(ReplaceExpressions(EliminateSubqueryAliases(plan))))
  }

  /** What BETWEEN and nullif compute once, written out at each place that reads it. */
  private def inlined(plan: LogicalPlan): LogicalPlan = plan.transform { case node =>
    node.transformExpressionsUp {
      case With(child, common) if common.forall(_.child.deterministic) =>
        val values = common.map(c => c.id -> c.child).toMap
        child.transform { case ref: CommonExpressionRef => values.getOrElse(ref.id, ref) }
    }
  }

  /** The one name in a source; one that puts several together has none. */
  private def nameOf(source: LogicalPlan): Option[String] = {
    def names(plan: LogicalPlan): Seq[String] =
      plan.getTagValue(Name).map(Seq(_)).getOrElse(plan.children.flatMap(names))
    names(source).distinct match {
      case Seq(name) => Some(name)
      case _ => None
    }
  }

  /** What Spark's optimizer makes of INTERSECT and EXCEPT: rows compared as a whole, nulls included. */
  private def matching(left: LogicalPlan, right: LogicalPlan, how: JoinType): LogicalPlan = {
    val same = left.output.zip(right.output).map { case (l, r) => EqualNullSafe(l, r): Expression }
    Distinct(Join(left, right, how, same.reduceLeftOption(And(_, _)), JoinHint.NONE))
  }

  /**
   * `a <=> b` as `a = b OR (a IS NULL AND b IS NULL)`, the form in which step.py tells the two cases apart. Only where
   * the whole condition fails with it: elsewhere, below NOT for one, null is not false.
   */
  private def nullsApart(condition: Expression): Expression = condition match {
    case And(l, r) => And(nullsApart(l), nullsApart(r))
    case EqualNullSafe(l, r) if l.nullable && r.nullable => Or(EqualTo(l, r), And(IsNull(l), IsNull(r)))
    case EqualNullSafe(l, r) => EqualTo(l, r)
    case other => other
  }

  private def isRecursive(plan: LogicalPlan): Boolean = plan.exists(_.isInstanceOf[RecursiveReference])

  /** What Python knows a function by: its class, marked where it gives null instead of an error (`try_cast`, `try_add`). */
  private def functionName(e: Expression): String = {
    val tries = e.productIterator.exists {
      case EvalMode.TRY => true
      case _: Expression => false
      case context: Product => context.productIterator.contains(EvalMode.TRY)
      case _ => false
    }
    if (tries) s"Try${e.getClass.getSimpleName}" else e.getClass.getSimpleName
  }

  private def generatesCode(e: Expression): Boolean = e match {
    case _: CodegenFallback | _: Unevaluable | _: PlanExpression[_] => false
    case _ => true
  }

  private def constant(l: Literal): JValue = l.value match {
    case null => JNull
    case b: Boolean => JBool(b)
    case n: Byte => JInt(n.toInt)
    case n: Short => JInt(n.toInt)
    case n: Int => JInt(n)
    case n: Long => JInt(n)
    case f: Float => JDouble(f.toDouble)
    case d: Double if !d.isNaN && !d.isInfinite => JDouble(d)
    case d: Decimal => JString(d.toJavaBigDecimal.toPlainString)
    case s: UTF8String => JString(s.toString)
    case other => JString(other.toString)
  }
}
