package org.apache.spark.sql.paralagg.plan

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.json4s._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, JoinType, LeftAnti, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.connector.catalog.CatalogManager
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.paralagg.SparkMinor
import org.apache.spark.sql.types._

/**
 * Analysed steps as Step JSON (see pyspark_paralagg/program/step.py), with two things that JSON cannot hold. These are
 * the Catalyst expression of each `handle`, and the plans of the sources (maximal sub-plans without a recursive
 * reference).
 */
class Analysis(names: Seq[String], steps: Seq[LogicalPlan], catalogs: CatalogManager) {
  private val handles = ArrayBuffer.empty[Expression]
  private val sourcePlans = ArrayBuffer.empty[LogicalPlan]
  private val ids = mutable.Map.empty[ExprId, Int]
  private val variants = mutable.Map.empty[(String, Seq[DataType]), ArrayBuffer[Any]]

  private val stepsJson: JValue = JArray(names.zip(Analysis.prepare(steps, catalogs)).map { case (name, plan) =>
    ("name" -> name) ~ ("columns" -> references(plan.output)) ~ ("plan" -> node(plan)): JValue
  }.toList)

  /** The bases of a recursion in SQL, which questions about its rows read again. */
  @volatile var sqlBases: Option[Seq[LogicalPlan]] = None

  /** What runs of the relations of these steps have computed for several queries. */
  val kept = new KeptRuns

  def templates: IndexedSeq[Expression] = handles.toIndexedSeq
  def sources: IndexedSeq[LogicalPlan] = sourcePlans.toIndexedSeq

  def json(): String = JsonMethods.compact(toJson)

  def toJson: JValue = {
    val sourcesJson = sourcePlans.zipWithIndex.map { case (plan, id) =>
      ("id" -> id) ~ ("columns" -> references(plan.output)) ~ ("size" -> plan.stats.sizeInBytes.min(Long.MaxValue)) ~
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
      val kind = joinType match {
        case _: ExistenceJoin => "existence"
        case other => other.sql.toLowerCase(java.util.Locale.ROOT).replace(" ", "")
      }
      ("op" -> "join") ~ ("type" -> kind) ~
        ("left" -> node(left)) ~ ("right" -> node(right)) ~ ("condition" -> condition.map(expression))
    case Intersect(left, right, false) => node(Analysis.matching(left, right, LeftSemi))
    case Except(left, right, false) => node(Analysis.matching(left, right, LeftAnti))
    case u: Union =>
      ("op" -> "union") ~ ("children" -> JArray(u.children.map(node).toList)) ~ ("columns" -> references(u.output)) ~
        ("child_columns" -> JArray(u.children.map(c => JArray(c.output.map(a => JString(id(a))).toList)).toList))
    case Distinct(child) => ("op" -> "distinct") ~ ("child" -> node(child))
    case d: Deduplicate if d.child.outputSet.subsetOf(AttributeSet(d.keys)) =>
      ("op" -> "distinct") ~ ("child" -> node(d.child))
    case a: Aggregate =>
      ("op" -> "aggregate") ~ ("child" -> node(a.child)) ~
        ("keys" -> JArray(a.groupingExpressions.map(expression).toList)) ~
        ("outputs" -> named(a.aggregateExpressions)) ~
        ("one_row" -> (if (a.groupingExpressions.isEmpty) Some(node(Analysis.oneRow)) else None))
    case h: ResolvedHint => node(h.child)
    case v: View => node(v.child) // a temporary view that the step has made of its DataFrame
    case s: Sort => node(s.child) // rows of a recursion have no order, and a LIMIT is refused
    case p: RepartitionOperation => node(p.child) // nor partitions of a user's choice
    case p: RebalancePartitions => node(p.child)
    case other =>
      ("op" -> "unsupported") ~ ("name" -> other.nodeName) ~ ("children" -> JArray(other.children.map(node).toList))
  }

  /** Returns the id of a source. Equal plans share an id, so it is loaded once; their columns have separate ids. */
  private def source(plan: LogicalPlan): Int = {
    val existing = sourcePlans.indexWhere(s => s.output.length == plan.output.length && s.sameResult(plan))
    if (existing >= 0) existing
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
    ("col" -> id(e)) ~ ("name" -> e.name) ~ ("expr" -> expression(e)): JValue
  }.toList)

  /** Returns a column's number by order of appearance: unlike Spark's ids, it gives equal steps equal JSON. */
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
      call(e, if (a.filter.isEmpty) plain else s"$plain:filter", function.children, hasCode = false)
    case Cast(r: RaiseError, dataType, _, _) => raised(r, dataType)
    case r: RaiseError => raised(r, r.dataType)
    case in: InSubquery => // its ListQuery has no type before Spark rewrites it
      ("fn" -> "IN (subquery)") ~ ("args" -> JArray(in.values.map(expression).toList)) ~ ("type" -> "boolean") ~
        ("nullable" -> true) ~ ("handle" -> handle(in)) ~ ("deterministic" -> true) ~ ("codegen" -> false)
    case _ =>
      val name = Analysis.functionName(e)
      call(e, name, e.children, Analysis.generatesCode(e), variant(e, (name, e.dataType +: e.children.map(_.dataType))))
  }

  /** Returns an error with the type of the value in whose place it stands. */
  private def raised(error: RaiseError, dataType: DataType): JValue = SparkMinor.messageOf(error) match {
    case Some(message) =>
      ("fn" -> "RaiseError") ~ ("args" -> JArray(List(expression(message)))) ~
        ("type" -> Analysis.typeName(dataType)) ~ ("nullable" -> true) ~ ("handle" -> JNull) ~
        ("deterministic" -> true) ~ ("codegen" -> true)
    case _ => call(error, "RaiseError", error.children, hasCode = false) // with an error class of Spark's own
  }

  private def call(
      e: Expression, name: String, args: Seq[Expression], hasCode: Boolean, variant: Option[Int] = None): JValue =
    ("fn" -> name) ~ ("args" -> JArray(args.map(expression).toList)) ~ ("type" -> Analysis.typeName(e.dataType)) ~
      ("nullable" -> e.nullable) ~ ("handle" -> handle(e)) ~
      ("deterministic" -> (e.deterministic || !args.forall(_.deterministic))) ~ ("codegen" -> hasCode) ~
      ("variant" -> variant)

  /** Numbers functions of one name and the same types that have other parameters; None for the first. */
  private def variant(e: Expression, function: (String, Seq[DataType])): Option[Int] = {
    val known = variants.getOrElseUpdate(function, ArrayBuffer.empty)
    val own = e.productIterator.map(Analysis.parameter).toSeq
    if (!known.contains(own)) known += own
    Some(known.indexOf(own)).filter(_ > 0)
  }

  private def handle(e: Expression): Int = {
    handles += e
    handles.length - 1
  }
}

object Analysis {

  /** Returns the type's name for Python; `simpleString` omits fields of wide structs. */
  private def typeName(dataType: DataType): String = dataType match {
    case udt: UserDefinedType[_] => udt.simpleString
    case other => other.catalogString
  }

  /** The user's name of a plan: a table, a view or `alias("…")`. */
  private val Name = TreeNodeTag[String]("paralagg.name")

  /** Returns a plan of one row: an aggregate without groups has a row even if it reads none. */
  private def oneRow: LogicalPlan = Project(Seq(Alias(Literal(true), "one")()), OneRowRelation())

  /** Removes aliases, and replaces the functions that Spark replaces before execution. */
  private def prepare(plans: Seq[LogicalPlan], catalogs: CatalogManager): Seq[LogicalPlan] = {
    plans.foreach(_.foreach {
      case a: SubqueryAlias => a.child.setTagValue(Name, a.alias)
      case _ =>
    })
    QueryConstants.folded(plans.map(p => ReplaceExpressions(EliminateSubqueryAliases(p))), catalogs)
      .map(p => StepSubqueries.joined(SparkMinor.inlineCommon(p)))
  }

  /** Returns the name of a source, if it has only one. */
  private def nameOf(source: LogicalPlan): Option[String] = {
    def names(plan: LogicalPlan): Seq[String] =
      plan.getTagValue(Name).map(Seq(_)).getOrElse(plan.children.flatMap(names))
    names(source).distinct match {
      case Seq(name) => Some(name)
      case _ => None
    }
  }

  /** Rewrites INTERSECT and EXCEPT as Spark's optimizer does: a join that compares whole rows, including nulls. */
  private def matching(left: LogicalPlan, right: LogicalPlan, joinType: JoinType): LogicalPlan = {
    val same = left.output.zip(right.output).map { case (l, r) => EqualNullSafe(l, r): Expression }
    Distinct(Join(left, right, joinType, same.reduceLeftOption(And(_, _)), JoinHint.NONE))
  }

  private[plan] def isRecursive(plan: LogicalPlan): Boolean = plan.exists(_.isInstanceOf[RecursiveReference])

  /** Returns a function's name for Python: its class, with a prefix if it returns null on errors (`try_cast`). */
  private def functionName(e: Expression): String = {
    val isTry = e.productIterator.exists {
      case EvalMode.TRY => true
      case _: Expression => false
      case context: Product => context.productIterator.contains(EvalMode.TRY)
      case _ => false
    }
    val name = e match {
      case add: TimestampAdd => s"TimestampAdd${unit(add.unit)}"
      case difference: TimestampDiff => s"TimestampDiff${unit(difference.unit)}"
      case _ => e.getClass.getSimpleName
    }
    if (isTry) s"Try$name" else name
  }

  private def unit(name: String): String = name.toLowerCase(java.util.Locale.ROOT).capitalize

  /** Returns a part of a function that distinguishes it from others of its class (a field's ordinal, a unit), no argument. */
  private def parameter(part: Any): Any = part match {
    case _: Expression => None
    case many: Iterable[_] => many.map(parameter).toSeq
    case p: Product => p.productPrefix +: p.productIterator.map(parameter).toSeq
    case other => other
  }

  private def generatesCode(e: Expression): Boolean = e match {
    case _: CodegenFallback | _: Unevaluable | _: PlanExpression[_] => false
    case _ => true
  }

  private def constant(l: Literal): JValue = l.value match {
    case null => JNull
    case b: Boolean => JBool(b)
    case n @ (_: Byte | _: Short | _: Int | _: Long) => JInt(n.asInstanceOf[Number].longValue)
    case f: Float => JDouble(f.toDouble)
    case d: Double if !d.isNaN && !d.isInfinite => JDouble(d)
    case d: Decimal => JString(d.toJavaBigDecimal.toPlainString)
    case other => JString(other.toString)
  }
}
