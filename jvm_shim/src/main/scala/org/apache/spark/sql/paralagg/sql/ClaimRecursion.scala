package org.apache.spark.sql.paralagg.sql

import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.paralagg.{Ctes, ErrorCodes, SparkMinor}

/**
 * The pass that claims the recursive CTEs of a parsed plan that Spark does not support: CTEs with an aggregate in the
 * head, with `UNION`, and those that read such a CTE and are read by it. A claimed CTE becomes an ordinary one with a
 * [[RecursiveCte]] as its query. Other CTEs stay unchanged.
 *
 * {{{
 *   WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT e.dst FROM r JOIN e ON r.n = e.src) …
 *     r = RecursiveCte(bases: SELECT 1, steps: SELECT e.dst FROM RecursiveName(r) JOIN e …)
 * }}}
 */
class ClaimRecursion(heads: Heads, isConfigured: Boolean = true) {

  def apply(plan: LogicalPlan): LogicalPlan =
    // Spark parses the text of a view during an analysis, where its tests forbid plain transforms.
    AnalysisHelper.allowInvokingTransformsInAnalyzer(claim(plan))

  /** Claims inner CTEs first, so that their reads of an outer recursion are found inside a RecursiveCte. */
  private def claim(plan: LogicalPlan): LogicalPlan = {
    val inside = plan match {
      case w: UnresolvedWith =>
        val relations = Ctes.of(w).map { case (name, alias, depth) =>
          (name, alias.mapChildren(claim).asInstanceOf[SubqueryAlias], depth)
        }
        replaced(w)(Ctes.replaced(w, claim(w.child), relations))
      case statement if SparkMinor.isScript(statement) => withParts(statement)(claimScript)
      case other => withQueries(other.mapChildren(claim))
    }
    inside.transformExpressions { case s: SubqueryExpression => s.withNewPlan(claim(s.plan)) } match {
      case w: UnresolvedWith if SparkMinor.allowsRecursion(w) => claimCtes(w)
      case other => other
    }
  }

  /** Returns `replacement` with the origin of `plan`, or `plan` itself if they are equal. */
  private def replaced(plan: UnresolvedWith)(replacement: => UnresolvedWith): UnresolvedWith = {
    val other = CurrentOrigin.withOrigin(plan.origin)(replacement)
    if (other == plan) plan else other
  }

  /**
   * Claims in a part of a script's statement. Parts such as handlers are no children, and Spark loses some of them if
   * it copies a statement with new children: all handlers of a BEGIN, the ELSE of an IF.
   */
  private def claimScript(part: Any): Any = part match {
    case plan: LogicalPlan => claim(plan)
    case parts: Seq[_] => parts.map(claimScript)
    case Some(part) => Some(claimScript(part))
    case other => other
  }

  /** Claims in the queries that commands hold besides their children; restores pieces of text (of a view). */
  private def withQueries(plan: LogicalPlan): LogicalPlan = withParts(plan) {
    case query: LogicalPlan if !plan.children.exists(_ eq query) => claim(query)
    case Some(text: String) => Some(heads.restored(text))
    case text: String => heads.restored(text)
    case other => other
  }

  private def withParts(plan: LogicalPlan)(change: Any => Any): LogicalPlan = {
    val parts = plan.productIterator.toArray
    val changed = parts.map(change)
    if (parts.sameElements(changed)) plan else plan.makeCopy(changed.map(_.asInstanceOf[AnyRef]))
  }

  private def claimCtes(w: UnresolvedWith): UnresolvedWith = {
    val ctes = withRecurring(Ctes.of(w).map { case (name, alias, depth) => new Cte(name, alias, depth, heads) })
    val groups = ctes.map(c => c -> recursionOf(c, ctes)).filter(g => isClaimed(g._2)).toMap
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
      replaced(w)(Ctes.replaced(w, w.child, relations))
    }
  }

  /** Reads `recurring.r`, DuckDB's name of all rows so far, as `r`: a fixpoint joins each new row with all rows. */
  private def withRecurring(ctes: Seq[Cte]): Seq[Cte] = {
    val keyed = namesOf(ctes.filter(c => c.hasKeys || c.isUnion))
    ctes.map(cte =>
      cte.reading(_.transformUpWithSubqueries {
        case r @ UnresolvedRelation(Seq(schema, name), _, _)
            if Cte.isSame(schema, "recurring") && keyed.exists(Cte.isSame(_, name)) =>
          r.copy(multipartIdentifier = Seq(name))
      }))
  }

  private def namesOf(ctes: Seq[Cte]): Seq[String] = ctes.map(_.name)

  /**
   * Returns the CTEs that `cte` reads and that read it, with itself, in order. If it is not recursive, it is alone if
   * its head aggregates, else there are none.
   */
  private def recursionOf(cte: Cte, all: Seq[Cte]): Seq[Cte] = {
    def reached(from: Cte): Set[Cte] = {
      var result = Set.empty[Cte]
      var next = Set(from)
      while (next.nonEmpty) {
        val read = next.flatMap(c => Cte.reads(c.alias.child, namesOf(all)))
        next = all.filter(c => read(c.name)).toSet -- result
        result ++= next
      }
      result
    }
    val below = reached(cte)
    if (below(cte)) all.filter(c => below(c) && reached(c)(cte)) else if (cte.hasKeys) Seq(cte) else Nil
  }

  private def isClaimed(group: Seq[Cte]): Boolean = {
    // A CTE alone without a union has no base: Spark's error would have no position.
    def isAlone = group.length == 1 && !group.head.isUnionAll
    group.exists(c => c.isUnion || c.hasKeys) || isAlone
  }

  /** Checks that each relation has base rows, or reads only relations that have. */
  private def checkBases(group: Seq[Cte]): Unit = {
    group.filter(c => c.isUnionAll && !c.hasKeys).foreach { c =>
      throw new SqlProblem(
        ErrorCodes.SqlUnionAll,
        s"${c.name} and ${namesOf(group.filter(_ ne c)).mkString(", ")} read each other, and UNION ALL would keep a row for " +
          "every derivation, of which there may be infinitely many",
        "write UNION, or add an aggregate to its head",
        c.place)
    }
    var started = Seq.empty[Cte]
    var next = group.filter(startsFrom(_, group, started))
    while (next.nonEmpty) {
      started ++= next
      next = group.diff(started).filter(startsFrom(_, group, started))
    }
    group.diff(started).headOption.foreach { c =>
      val other = c.branches.collectFirst { case s: SetOperation => s.nodeName.toUpperCase(java.util.Locale.ROOT) }
      val (problem, hint) = other match {
        case Some(word) =>
          s"$word combines branches of ${c.name}, which only UNION can do in a recursion" ->
            s"write UNION between the branches, and $word in the query that reads ${c.name}"
        case None =>
          s"every branch of ${c.name} reads the recursion, so it has no base case" ->
            s"add a branch that does not read it: SELECT … UNION SELECT … FROM ${c.name}"
      }
      throw new SqlProblem(
        ErrorCodes.SqlNoBase,
        problem,
        hint,
        heads.restored(Cte.place(c.branches.head, namesOf(group)).get))
    }
  }

  private def startsFrom(cte: Cte, group: Seq[Cte], started: Seq[Cte]): Boolean =
    cte.branches.exists(b => Cte.reads(b, namesOf(group)).subsetOf(namesOf(started).toSet))

  /** Sorts CTEs after those that they read, also if another CTE of their recursion is defined earlier. */
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
        heads.restored(c.alias.origin), usingKey = c.usingKey, traces = c.traces, outputNames = c.outputNames)
    }
    val children = branches.flatMap(_._1) ++ branches.flatMap(_._2.map(_._2))
    RecursiveCte(cte.name, relations, group.flatMap(_.maxDepth).reduceOption(_ min _), children)
  }
}
