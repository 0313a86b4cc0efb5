package org.apache.spark.sql.paralagg.sql

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.paralagg.ErrorCodes

/**
 * Takes the recursive CTEs of a parsed plan that Spark itself cannot do, and leaves the others as they are: those with
 * an aggregate in the head, with `UNION`, and those that read each other where one of them has either. A claimed CTE
 * becomes an ordinary one whose query is a [[RecursiveCte]].
 *
 * {{{
 *   WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT e.dst FROM r JOIN e ON r.n = e.src) …
 *     r = RecursiveCte(bases: SELECT 1, steps: SELECT e.dst FROM RecursiveName(r) JOIN e …)
 * }}}
 */
class ClaimRecursion(heads: Heads, isConfigured: Boolean = true) {

  def apply(plan: LogicalPlan): LogicalPlan =
    // The text of a view is parsed in the middle of an analysis, where Spark's tests forbid plain transforms.
    AnalysisHelper.allowInvokingTransformsInAnalyzer(claimed(plan))

  /** Inner ones first: what they read of an outer recursion is then seen inside a RecursiveCte. */
  private def claimed(plan: LogicalPlan): LogicalPlan = {
    val inside = plan match {
      case w: UnresolvedWith =>
        val relations = w.cteRelations.map { case (name, alias, depth) =>
          (name, alias.mapChildren(claimed).asInstanceOf[SubqueryAlias], depth)
        }
        instead(w)(w.copy(child = claimed(w.child), cteRelations = relations))
      case statement: CompoundPlanStatement => withParts(statement)(ofScript)
      case other => withQueries(other.mapChildren(claimed))
    }
    inside.transformExpressions { case s: SubqueryExpression => s.withNewPlan(claimed(s.plan)) } match {
      case w: UnresolvedWith if w.allowRecursion => own(w)
      case other => other
    }
  }

  /** `made` at the place of `plan`; `plan` itself where nothing is new. */
  private def instead(plan: UnresolvedWith)(made: => UnresolvedWith): UnresolvedWith = {
    val other = CurrentOrigin.withOrigin(plan.origin)(made)
    if (other == plan) plan else other
  }

  /**
   * Statements of a script hold others that are no children of theirs, such as handlers, and Spark loses some where it
   * makes a statement of new children: all handlers of a BEGIN, the ELSE of an IF.
   */
  private def ofScript(part: Any): Any = part match {
    case plan: LogicalPlan => claimed(plan)
    case several: Seq[_] => several.map(ofScript)
    case Some(one) => Some(ofScript(one))
    case other => other
  }

  /** Commands hold queries beside their children, and pieces of the text (a view's). */
  private def withQueries(plan: LogicalPlan): LogicalPlan = withParts(plan) {
    case query: LogicalPlan if !plan.children.exists(_ eq query) => claimed(query)
    case Some(text: String) => Some(heads.restored(text))
    case text: String => heads.restored(text)
    case other => other
  }

  private def withParts(plan: LogicalPlan)(mend: Any => Any): LogicalPlan = {
    val held = plan.productIterator.toArray
    val mended = held.map(mend)
    if (held.sameElements(mended)) plan else plan.makeCopy(mended.map(_.asInstanceOf[AnyRef]))
  }

  private def own(w: UnresolvedWith): UnresolvedWith = {
    val ctes = w.cteRelations.map { case (name, alias, depth) => new Cte(name, alias, depth, heads) }
    val groups = ctes.map(c => c -> recursionOf(c, ctes)).filter(g => isOurs(g._1, g._2)).toMap
    if (!isConfigured) groups.keys.headOption.foreach(cte => SqlProblem.notConfigured(cte.name, cte.alias.origin))
    groups.values.toSet.foreach(checkBases)
    if (groups.isEmpty) w
    else {
      val relations = sorted(ctes, groups).map { cte =>
        val alias = groups.get(cte).fold(cte.alias) { group =>
          CurrentOrigin.withOrigin(cte.alias.origin)(SubqueryAlias(cte.name, recursive(cte, group)))
        }
        (cte.name, alias, if (groups.contains(cte)) None else cte.maxDepth)
      }
      instead(w)(w.copy(cteRelations = relations))
    }
  }

  private def namesOf(ctes: Seq[Cte]): Seq[String] = ctes.map(_.name)

  /** The CTEs that read each other with `cte`, in their order; none if it is not recursive. */
  private def recursionOf(cte: Cte, all: Seq[Cte]): Seq[Cte] = {
    def reached(from: Cte): Set[Cte] = {
      var found = Set.empty[Cte]
      var next = Set(from)
      while (next.nonEmpty) {
        val read = next.flatMap(c => Cte.reads(c.alias.child, namesOf(all)))
        next = all.filter(c => read(c.name)).toSet -- found
        found ++= next
      }
      found
    }
    val below = reached(cte)
    if (!below(cte)) Nil else all.filter(c => below(c) && reached(c)(cte))
  }

  private def isOurs(cte: Cte, group: Seq[Cte]): Boolean = {
    if (group.isEmpty && cte.aggregates.nonEmpty) {
      throw new SqlProblem(
        ErrorCodes.SqlHead,
        s"${cte.name} has an aggregate in its head and does not read itself",
        "aggregate with GROUP BY where nothing recurses",
        cte.aggregates.values.head.origin)
    }
    val isAlone = group.length == 1 && !cte.isUnion && !cte.isUnionAll // no base: Spark's error has no position
    group.exists(c => c.isUnion || c.aggregates.nonEmpty) || isAlone && group.nonEmpty
  }

  /** Each relation starts somewhere: from rows of its own, or from rows of one that does. */
  private def checkBases(group: Seq[Cte]): Unit = {
    group.filter(c => c.isUnionAll && c.aggregates.isEmpty).foreach { c =>
      throw new SqlProblem(
        ErrorCodes.SqlUnionAll,
        s"${c.name} reads ${namesOf(group.filter(_ ne c)).mkString(", ")} and is read by it, and UNION ALL keeps every " +
          "derivation of a row, of which a mutual recursion may have any number",
        "write UNION, or give it an aggregate in its head",
        c.place)
    }
    var started = Seq.empty[Cte]
    var next = group.filter(startsFrom(_, group, started))
    while (next.nonEmpty) {
      started ++= next
      next = group.diff(started).filter(startsFrom(_, group, started))
    }
    group.diff(started).headOption.foreach { c =>
      throw new SqlProblem(
        ErrorCodes.SqlNoBase,
        s"every branch of ${c.name} reads the recursion, so it has no row to start from",
        "begin with a branch that does not: SELECT … UNION SELECT … FROM " + c.name,
        heads.restored(Cte.place(c.branches.head, namesOf(group)).get))
    }
  }

  private def startsFrom(cte: Cte, group: Seq[Cte], started: Seq[Cte]): Boolean =
    cte.branches.exists(b => Cte.reads(b, namesOf(group)).subsetOf(namesOf(started).toSet))

  /** A CTE stands after those that it reads, also where a member of its recursion stands further up. */
  private def sorted(ctes: Seq[Cte], groups: Map[Cte, Seq[Cte]]): Seq[Cte] = {
    def before(c: Cte): Seq[Cte] = {
      val members = groups.getOrElse(c, Seq(c))
      members.flatMap { m =>
        val read = Cte.reads(m.alias.child, namesOf(ctes.takeWhile(_ ne m)))
        ctes.filter(o => read(o.name) && !members.contains(o))
      }
    }
    def placed(done: Seq[Cte], c: Cte): Seq[Cte] =
      if (done.contains(c)) done else before(c).foldLeft(done)(placed) :+ c
    ctes.foldLeft(Seq.empty[Cte])(placed)
  }

  private def recursive(cte: Cte, group: Seq[Cte]): RecursiveCte = {
    val names = namesOf(group)
    val placement = new Placement(names, heads)
    val branches = group.map { c =>
      val (steps, bases) = c.branches.partition(Cte.reads(_, names).nonEmpty)
      (bases, steps.map(s => s -> placement.bound(s, c)))
    }
    val relations = group.zip(branches).map { case (c, (bases, steps)) =>
      val places = (bases ++ steps.map(_._1)).map(b => heads.restored(b.origin))
      CteRelation(c.name, c.columnNames, c.aggregates, bases.length, steps.length, places,
        heads.restored(c.alias.origin))
    }
    val children = branches.flatMap(_._1) ++ branches.flatMap(_._2.map(_._2))
    RecursiveCte(cte.name, relations, group.flatMap(_.maxDepth).minOption, children)
  }
}
