package org.apache.spark.sql.paralagg.sql

import org.apache.spark.sql.catalyst.analysis.{AnsiTypeCoercion, TypeCoercion}
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.paralagg.ErrorCodes
import org.apache.spark.sql.paralagg.plan.Sets
import org.apache.spark.sql.types.DataType

/**
 * The analyzer rule that replaces each RecursiveCte by a RecursiveAggregate, in steps between those of Spark's
 * resolution:
 *
 * {{{
 *   bases resolved    the relation has columns: their names, and the types that Python's aggregators return for theirs
 *   names replaced    names of typed relations in steps become RecursiveReference, and Spark resolves the steps
 *   steps resolved    a wider type in a step widens the relation, and the steps are resolved again (as UNION widens);
 *                     else CompileRecursion returns the node
 * }}}
 *
 * An unresolved branch stays, and Spark's check reports the table or column with its position.
 */
object ResolveRecursion extends Rule[LogicalPlan] {
  private val MaxWidenings = 8 // more than int, bigint, decimal, double need; only growing decimals exceed it

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case cte: RecursiveCte => AnalysisHelper.allowInvokingTransformsInAnalyzer(advance(cte))
  }

  private def advance(cte: RecursiveCte): LogicalPlan = {
    val named = withReferences(withColumns(cte))
    if (!named.branches.forall(_.resolved) || named.relations.exists(_.columns.isEmpty)) named
    else {
      named.relations.foreach(checkArity(named, _))
      val wider = named.relations.map(widened(named, _))
      if (wider == named.relations) CompileRecursion(named)
      else if (named.widenings == MaxWidenings) refuseGrowth(named, wider)
      else {
        val again = named.copy(
          relations = wider, branches = named.allBases ++ named.templates.get, widenings = named.widenings + 1)
        withReferences(again)
      }
    }
  }

  /** Sets the columns of each relation with resolved bases, or, if it has no base, with a resolved step. */
  private def withColumns(cte: RecursiveCte): RecursiveCte = cte.copy(relations = cte.relations.map { r =>
    val bases = cte.basesOf(r)
    val typedBranches =
      if (bases.nonEmpty) Some(bases).filter(_.forall(_.resolved)) else cte.stepsOf(r).find(_.resolved).map(Seq(_))
    typedBranches.filter(_ => r.columns.isEmpty).fold(r) { branches =>
      checkArity(cte, r)
      val names = r.columnNames.getOrElse(branches.head.output.map(_.name))
      val keyed = r.withKeys(names)
      val types = branches.map(supplied(keyed, names, _)).reduceLeft[Seq[DataType]](wider(r, _, _))
      keyed.copy(columns = Some(CompileRecursion.declared(keyed, names, types)))
    }
  })

  private def withReferences(cte: RecursiveCte): RecursiveCte = {
    val templates = cte.templates.getOrElse(cte.allSteps)
    val typed = cte.relations.filter(_.columns.isDefined).map(r => r.name -> r).toMap
    val steps = cte.allSteps.map(_.transformUp {
      case RecursiveName(name) if typed.contains(name) =>
        typed(name).reference(typed(name).columns.get.map(c => AttributeReference(c.name, c.dataType)()))
    })
    cte.copy(branches = cte.allBases ++ steps, templates = Some(templates))
  }

  private def checkArity(cte: RecursiveCte, r: CteRelation): Unit = {
    val branches = (cte.basesOf(r) ++ cte.stepsOf(r)).zip(r.places).filter(_._1.resolved)
    val (count, where) = r.columnNames.map(names => (names.length, s"${r.name} has"))
      .getOrElse((branches.head._1.output.length, "the first branch has"))
    branches.find(_._1.output.length != count).foreach { case (branch, place) =>
      throw new SqlProblem(
        ErrorCodes.SqlArity,
        s"a branch of ${r.name} has ${columns(branch.output.length)}, and $where ${columns(count)}",
        "select one column for each column of the head, in its order" +
          (if (r.traces.isEmpty) "" else s"; ${r.traces.map(_.column).mkString(", ")} is computed afterwards"),
        place)
    }
  }

  private def columns(count: Int): String = if (count == 1) "1 column" else s"$count columns"

  private def widened(cte: RecursiveCte, r: CteRelation): CteRelation = {
    val columns = r.columns.get
    val steps = cte.stepsOf(r).map(supplied(r, columns.map(_.name), _))
    val types = steps.foldLeft(columns.map(_.dataType))(wider(r, _, _))
    if (types == columns.map(_.dataType)) r
    else r.copy(columns = Some(CompileRecursion.declared(r, columns.map(_.name), types)))
  }

  /** Returns the types of a branch's columns; elements of a set have the type of sets. */
  private def supplied(r: CteRelation, names: Seq[String], branch: LogicalPlan): Seq[DataType] =
    names.zip(branch.output).map { case (name, a) =>
      if (r.aggregates.get(name).exists(_.isSet)) Sets.setType(a.dataType) else a.dataType
    }

  private def wider(r: CteRelation, left: Seq[DataType], right: Seq[DataType]): Seq[DataType] =
    left.zip(right).zipWithIndex.map { case ((a, b), n) =>
      val coercion = if (conf.ansiEnabled) AnsiTypeCoercion else TypeCoercion
      coercion.findWiderTypeForTwo(a, b).getOrElse {
        throw new SqlProblem(
          ErrorCodes.SqlTypes,
          s"column ${n + 1} of ${r.name} is ${a.simpleString} in one branch and ${b.simpleString} in another",
          "cast one of them",
          r.places.head)
      }
    }

  private def refuseGrowth(cte: RecursiveCte, wider: Seq[CteRelation]): Nothing = {
    val ((was, is), n) = cte.relations.zip(wider).zipWithIndex.find { case ((a, b), _) => a != b }.get
    val (column, grown) = was.columns.get.zip(is.columns.get).find { case (a, b) => a != b }.get
    throw new SqlProblem(
      ErrorCodes.SqlTypes,
      s"${column.name} of ${was.name} grows in each iteration: ${column.dataType.simpleString} becomes " +
        grown.dataType.simpleString,
      "cast it in the branch that reads the recursion",
      cte.relations(n).placeOfStep(0))
  }
}
