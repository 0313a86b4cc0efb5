package org.apache.spark.sql.paralagg.sql

import org.json4s._
import org.json4s.JsonDSL._

import org.apache.spark.sql.{classic, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Cast, Coalesce, Expression, Literal}
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans.logical.{
  CTERelationDef, CTERelationRef, LocalRelation, LogicalPlan, Project, Union, WithCTE
}
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttribute
import org.apache.spark.sql.types.{ArrayType, DataType, LongType, StructField}
import org.apache.spark.sql.paralagg.plan.{
  Analysis, FixpointSpec, PlanReader, RecursiveAggregate, RecursiveReference, Routes, Sets
}

/** The compilation of a resolved recursion: a request to Python, and the nodes for its answer. */
object CompileRecursion {
  import PlanReader.{list, option, text}

  private val Reason = "a recursive CTE in SQL runs on the Spark engine"

  /** Returns the columns of a relation whose branches have these names and types; sum widens, for example. */
  def declared(r: CteRelation, names: Seq[String], types: Seq[DataType]): Seq[CteColumn] = {
    val request = ("name" -> r.name) ~ ("columns" -> fields(names, types)) ~ ("aggs" -> aggregates(r))
    val answer = PythonCompiler.request("declare", request).fold(raise(_, r.origin, Seq(r)), identity)
    names.zip(types).zip(list(answer \ "types").map(text)).map { case ((name, supplied), declared) =>
      CteColumn(name, if (declared == supplied.simpleString) supplied else DataType.fromDDL(declared))
    }
  }

  /** Returns the node for the target of `cte`, with the columns in the order of its head. */
  def apply(cte: RecursiveCte): LogicalPlan =
    compiled(cte, Reason, onlyLattice = false).fold(raise(_, cte.relations.head.origin, cte.relations), identity)

  /** Compiles `cte` or returns the refusal. `onlyLattice` refuses all others, for CTEs with the semantics of bags. */
  def compiled(cte: RecursiveCte, reason: String, onlyLattice: Boolean): Either[Refusal, LogicalPlan] = {
    val steps = cte.relations.map(r => r -> cte.stepsOf(r)).filter(_._2.nonEmpty)
    val analysis = new Analysis(
      steps.map(_._1.name),
      steps.map { case (r, branches) => union(branches.map(b => conformed(withoutCtes(b), r, isBase = false))) },
      SparkSession.active.asInstanceOf[classic.SparkSession].sessionState.catalogManager)
    analysis.sqlBases = Some(cte.relations.map { r =>
      if (r.bases > 0) union(cte.basesOf(r).map(conformed(_, r, isBase = true)))
      else LocalRelation(r.inOrder(r.columns.get).map(c => toAttribute(StructField(c.name, c.dataType))))
    })
    val relations = cte.relations.map { r =>
      ("name" -> r.name) ~ ("columns" -> fields(r.columns.get.map(_.name), r.columns.get.map(_.dataType))) ~
        ("aggs" -> aggregates(r)) ~ ("branches" -> r.steps) ~
        ("traces" -> calls(if (r.name == cte.target) r.traces else Nil, r)): JValue
    }
    val request = ("name" -> cte.target) ~ ("relations" -> relations.toList) ~ ("analysis" -> analysis.toJson) ~
      ("max_iterations" -> cte.maxDepth) ~ ("only_lattice" -> onlyLattice)
    PythonCompiler.request("compile", request).map { answer =>
      val fixpoint = build(answer, analysis, reason)(text(answer \ "result"))
      val rows = option(answer \ "routes")(Routes.of(_, fixpoint)).getOrElse(fixpoint)
      val names = cte.relations.find(_.name == cte.target).get.resultNames
      Project(names.map(n => rows.output.find(_.name == n).get), rows)
    }
  }

  /** Builds a node for each relation; a stratum reads the results of lower strata as further sources. */
  def build(answer: JValue, analysis: Analysis, reason: String): Map[String, LogicalPlan] =
    list(answer \ "strata").zipWithIndex.foldLeft(Vector.empty[(String, LogicalPlan)]) {
      case (lower, (stratum, position)) =>
        val sources = analysis.sources ++ analysis.sqlBases.get ++ lower.map(_._2)
        lower ++ list(stratum \ "relations").map(text).map { name =>
          val spec = new FixpointSpec(text(stratum \ "plan"), position, name, analysis, reason)
          name -> RecursiveAggregate.of(spec, sources)
        }
    }.toMap

  /**
   * Inlines CTEs: those of a WITH above the recursion, which do not read it, and those of a source, such as a view.
   * Spark would inline the latter later, but then the size of the source is unknown now.
   */
  private def withoutCtes(step: LogicalPlan): LogicalPlan = step.transformUp {
    case WithCTE(query, definitions) if query.exists(_.isInstanceOf[RecursiveReference]) =>
      definitions.foldRight(query) { (definition, below) =>
        below.transformUpWithSubqueries {
          case r: CTERelationRef if r.cteId == definition.id =>
            Project(definition.output.zip(r.output).map { case (a, to) => Alias(a, to.name)(exprId = to.exprId) },
              definition.child)
        }
      }
    case w: WithCTE if readsOnlyItsOwn(w) => InlineCTE()(w)
  }

  private def readsOnlyItsOwn(w: WithCTE): Boolean = {
    val definitions = w.collectWithSubqueries { case definition: CTERelationDef => definition.id }.toSet
    w.collectWithSubqueries { case r: CTERelationRef => r.cteId }.forall(definitions)
  }

  private def union(branches: Seq[LogicalPlan]): LogicalPlan =
    if (branches.length == 1) branches.head else Union(branches)

  /** Projects a branch to the relation's order, names and types; null in a counted column counts 1. */
  private def conformed(branch: LogicalPlan, r: CteRelation, isBase: Boolean): LogicalPlan = Project(
    r.inOrder(branch.output.zip(r.columns.get).map { case (a, c) => Alias(value(a, c, r, isBase), c.name)() }),
    branch)

  private def value(a: Attribute, c: CteColumn, r: CteRelation, isBase: Boolean): Expression = {
    def cast(e: Expression, to: DataType): Expression = if (e.dataType == to) e else Cast(e, to)
    (r.aggregates.get(c.name), c.dataType) match {
      case (Some(call), _) if call.function == "count" => Coalesce(Seq(cast(a, LongType), Literal(1L)))
      case (Some(call), ArrayType(element, _)) if call.isSet && Sets.setType(a.dataType) != a.dataType =>
        Sets.element(cast(a, element))
      case (Some(call), to) if call.isSet && isBase => Sets.ofArray(cast(a, to), Literal(call.limit))
      case (_, to) => cast(a, to)
    }
  }

  private def fields(names: Seq[String], types: Seq[DataType]): JValue =
    JArray(names.zip(types).map { case (name, t) => JArray(List(JString(name), JString(t.simpleString))) }.toList)

  private def aggregates(r: CteRelation): JValue = calls(r.aggregates.toSeq.sortBy(_._1).map(_._2), r)

  private def calls(calls: Seq[HeadAggregate], r: CteRelation): JValue = JObject(calls.toList.map { a =>
    a.column -> (("function" -> a.function) ~ ("argument" -> a.argument) ~ ("using_key" -> r.usingKey.isDefined))
  })

  /** Throws the compiler's refusal with the position of the aggregate in a head, or of the branch. */
  private def raise(refusal: Refusal, default: Origin, relations: Seq[CteRelation]): Nothing = {
    val place = relations.find(r => refusal.relation.contains(r.name)).flatMap { r =>
      refusal.column.flatMap(c => (r.aggregates.values ++ r.traces).find(_.column == c)).map(_.origin)
        .orElse(refusal.branch.filter(_ < r.steps).map(r.placeOfStep))
    }
    throw new SqlProblem(refusal.code, refusal.text, refusal.hint, place.getOrElse(default))
  }
}
