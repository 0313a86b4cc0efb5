package org.apache.spark.sql.paralagg.plan

import scala.collection.mutable

import org.json4s._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf

/**
 * The facts of an analysed plan over [[RecursiveReference]]s that a maintained table needs
 * (pyspark_paralagg/maintenance/program.py): its reads of references, in the order of `substitute`, its other sources,
 * and its text.
 *
 * {{{ {"reads": [{"name", "blocker", "negated", "side": 2 | null, "merger", "rowwise", "branches": {"0": 1}}], "others": ["table x"], "unstable": "rand()" | null, "text", "rows"} }}}
 *
 * The blocker of a read is the first operator above it that may remove rows when its input gets new rows. Without a
 * blocker the plan returns all new rows if it gets only the new rows for that read. A read is `negated` if its only
 * blocker is an anti join: then `turn` returns the rows that a changed row removes or lets through. Its `side` is the
 * number of the first anti join above it that has it on its right side. The merger is the
 * first operator above it that may return a new row once for several, or not at all because it is not new (DISTINCT):
 * with neither, the plan is linear in that read, duplicates included. `branches` maps each union above the read, by number, to the
 * child that contains it; the other children contribute no new rows. A read is `rowwise` if only operators that take
 * each row alone lie between it and the recursion: what a rule joins then gets only rows of new rows.
 */
object Reads {

  def json(session: SparkSession, plan: LogicalPlan, relations: Set[String]): String = {
    val reads = mutable.ArrayBuffer.empty[JValue]
    visit(plan, relations, Top) { (r, place) =>
      val negated = place.blockers == List(AntiJoin)
      reads += ("name" -> r.name) ~ ("blocker" -> place.blockers.headOption) ~ ("negated" -> negated) ~
        ("side" -> place.side) ~
        ("merger" -> place.merger) ~ ("rowwise" -> place.rowwise) ~ ("branches" -> JObject(place.branches.map {
          case (union, child) =>
            union.toString -> JInt(child)
        }))
      r
    }
    val plans = SharedRows.all(plan)
    val leaves = plans.flatMap(_.collectWithSubqueries { case leaf if leaf.children.isEmpty => leaf })
    JsonMethods.compact(
      ("reads" -> JArray(reads.toList)) ~ ("others" -> leaves.flatMap(nameOfOther).distinct) ~
        ("unstable" -> unstable(plans)) ~ ("text" -> text(plans)) ~
        ("rows" -> leaves.filter(isConstant).map(fingerprint(session, _))))
  }

  /** Replaces the k-th read by the k-th of `plans`, whose columns are matched by name. */
  def substitute(plan: LogicalPlan, plans: Seq[LogicalPlan]): LogicalPlan = {
    val next = plans.iterator
    visit(plan, Set.empty, Top)((r, _) => selected(next.next(), r))
  }

  /**
   * As `substitute`, for the rows that the anti join above the negated read `at` rejects if reads on its right side are
   * replaced by `changed`. If `lets`, those of them that it lets through over `plans`.
   */
  def turn(
      plan: LogicalPlan, plans: Seq[LogicalPlan], at: Int, changed: Seq[LogicalPlan], lets: Boolean): LogicalPlan = {
    val next = plans.zip(changed).zipWithIndex.iterator
    val marked = visit(plan, Set.empty, Top) { (r, _) =>
      val ((rows, some), n) = next.next()
      Turned(selected(rows, r), selected(some, r), n == at)
    }
    marked.transformUp {
      case j @ Join(left, right, LeftAnti, _, _) if right.exists { case t: Turned => t.isIt; case _ => false } =>
        val rejected = j.copy(right = right.transform { case t: Turned => t.changed }, joinType = LeftSemi)
        if (lets) j.copy(left = rejected) else rejected
    }.transform { case t: Turned => t.all }
  }

  private case class Turned(all: LogicalPlan, changed: LogicalPlan, isIt: Boolean) extends LeafNode {
    override def output: Seq[Attribute] = all.output
  }

  /** Returns `plan` with the columns of the read `r`. */
  private def selected(plan: LogicalPlan, r: RecursiveReference): LogicalPlan = {
    val rows = fresh(plan)
    Project(
      r.output.map { a =>
        val column = rows.output.find(_.name == a.name).get
        Alias(column, a.name)(exprId = a.exprId)
      },
      rows)
  }

  /** Renews the column ids of the leaves, since a plan may contain the same rows several times. */
  private def fresh(plan: LogicalPlan): LogicalPlan = plan.transformUpWithNewOutput {
    case leaf: MultiInstanceRelation if leaf.asInstanceOf[LogicalPlan].children.isEmpty =>
      val instance = leaf.newInstance()
      instance -> leaf.asInstanceOf[LogicalPlan].output.zip(instance.output)
  }

  private case class Place(
      blockers: List[String],
      side: Option[Int],
      merger: Option[String],
      rowwise: Boolean,
      branches: List[(Int, Int)])
  private val Top = Place(Nil, None, None, rowwise = true, Nil)

  private def visit(plan: LogicalPlan, relations: Set[String], place: Place)(
      replace: (RecursiveReference, Place) => LogicalPlan): LogicalPlan = {
    var unions = 0
    var antiJoins = 0
    def below(plan: LogicalPlan, place: Place): LogicalPlan = plan match {
      case r: RecursiveReference => replace(r, place)
      case _ =>
        val inside = plan.mapExpressions(_.transform { case s: SubqueryExpression =>
          s.withNewPlan(below(s.plan, place.copy(blockers = place.blockers :+ "a subquery", rowwise = false)))
        })
        val union = unions
        if (plan.isInstanceOf[Union]) unions += 1
        val isAnti = plan match { case j: Join => j.joinType == LeftAnti; case _ => false }
        val antiJoin = antiJoins
        if (isAnti) antiJoins += 1
        val places = inside.children.indices.map { at =>
          val branches = if (plan.isInstanceOf[Union]) (union, at) :: place.branches else place.branches
          Place(
            place.blockers ++ blocker(plan, at, relations),
            place.side.orElse(if (isAnti && at == 1) Some(antiJoin) else None), place.merger.orElse(merger(plan, at)),
            recurses(plan, relations) || place.rowwise && isRowwise(plan), branches)
        }.iterator
        inside.mapChildren(child => below(child, places.next()))
    }
    below(plan, place)
  }

  private def recurses(plan: LogicalPlan, relations: Set[String]): Boolean =
    plan.exists { case r: RecursiveReference => relations(r.name); case _ => false }

  private def isRowwise(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter | _: Union | _: SubqueryAlias | _: ResolvedHint | _: Generate |
        _: RepartitionOperation => true
    case _ => false
  }

  /** Returns why new rows of child `at` may do more than add rows to the result; None if they do not. */
  private def blocker(plan: LogicalPlan, at: Int, relations: Set[String]): Option[String] = plan match {
    case _: Project | _: Filter | _: Union | _: Distinct | _: SubqueryAlias | _: ResolvedHint | _: Sort | _: Generate |
        _: RepartitionOperation => None
    case d: Deduplicate if d.child.outputSet.subsetOf(AttributeSet(d.keys)) => None
    case _: Deduplicate => Some("dropDuplicates by some columns")
    case j: Join => joinBlocker(j.joinType, at)
    case Intersect(_, _, false) => None
    case Except(_, _, false) => if (at == 0) None else Some("the right side of EXCEPT")
    case a: Aggregate if !a.aggregateExpressions.exists(_.exists(_.isInstanceOf[AggregateExpression])) => None
    // The compiler has checked that this aggregate is the one of the head.
    case a: Aggregate if recurses(a, relations) => None
    case _: Aggregate => Some("an aggregate")
    case other => Some(other.nodeName)
  }

  /** Returns why child `at` may have new rows that the result has already; None if each adds its rows. */
  private def merger(plan: LogicalPlan, at: Int): Option[String] = plan match {
    case _: Distinct | _: Deduplicate => Some("DISTINCT")
    case s: SetOperation => Some(s.nodeName.toUpperCase(java.util.Locale.ROOT))
    case j: Join if j.joinType == LeftSemi && at == 1 => Some("the right side of a semi join")
    case a: Aggregate if !a.aggregateExpressions.exists(_.exists(_.isInstanceOf[AggregateExpression])) =>
      Some("DISTINCT")
    case _ => None
  }

  private val AntiJoin = "the right side of an anti join"

  private def joinBlocker(joinType: JoinType, at: Int): Option[String] = joinType match {
    case _: InnerLike | LeftSemi => None
    case LeftOuter | LeftAnti if at == 0 => None
    case RightOuter if at == 1 => None
    case LeftAnti => Some(AntiJoin)
    case _ => Some(s"the optional side of a ${joinType.sql.toLowerCase(java.util.Locale.ROOT)} join")
  }

  private def isConstant(leaf: LogicalPlan): Boolean = leaf match {
    case _: LocalRelation | _: LogicalRDD => true
    case _ => false
  }

  /** Returns the name of a source that is not a reference, and may change unnoticed. */
  private def nameOfOther(leaf: LogicalPlan): Option[String] = leaf match {
    case _: RecursiveReference | _: SharedRows | _: OneRowRelation | _: Range | _: CTERelationRef => None
    case constant if isConstant(constant) => None
    case r: LogicalRelation => Some(r.catalogTable.fold(r.relation.toString)(_.identifier.unquotedString))
    case r: HiveTableRelation => Some(r.tableMeta.identifier.unquotedString)
    case r: DataSourceV2Relation => Some(r.name)
    case other => Some(other.nodeName)
  }

  /** Returns the name of an expression whose value differs in each evaluation. */
  private def unstable(plans: Seq[LogicalPlan]): Option[String] = plans.flatMap(_.collectWithSubqueries { case p =>
    p.expressions.flatMap(_.find(e => !e.deterministic && e.children.forall(_.deterministic))) ++
      p.expressions.flatMap(_.find(e => e.children.isEmpty && e.containsPattern(CURRENT_LIKE)))
  }).flatten.headOption.map(_.prettyName)

  /**
   * Returns the text of the plans with columns numbered by appearance, which is the same in every session. Text alone
   * would not tell all programs apart: names and literals may have any characters, so they follow it one by one.
   */
  private def text(plans: Seq[LogicalPlan]): String = {
    val unlimited = SQLConf.get.clone()
    unlimited.setConf(SQLConf.MAX_TO_STRING_FIELDS, Int.MaxValue)
    val tree = SQLConf.withExistingConf(unlimited) {
      plans.map(_.treeString(verbose = false, maxFields = Int.MaxValue)).mkString("\n")
    }
    val numbers = mutable.HashMap.empty[String, Int]
    val parts = plans.flatMap(_.collectWithSubqueries { case p =>
      p.expressions.flatMap(_.collect {
        case u: PythonUDF => u.func.command.mkString(",").hashCode.toString
        case l: Literal => s"${l.dataType.catalogString} ${l.sql}"
        case n: NamedExpression => n.name
      })
    }).flatten
    "#(\\d+)".r.replaceAllIn(tree, m => s"#${numbers.getOrElseUpdate(m.group(1), numbers.size)}") +
      parts.map(t => s"${t.length} $t").mkString("\n", ",", "")
  }

  /** Returns the number and two sums of hashes of rows that the program itself contains, in any order. */
  private def fingerprint(session: SparkSession, leaf: LogicalPlan): String = {
    val hashes = Dataset.ofRows(session, leaf).queryExecution.toRdd.map { row: InternalRow =>
      val bytes = row.asInstanceOf[UnsafeRow]
      def hash(seed: Long) =
        XXH64.hashUnsafeBytes(bytes.getBaseObject, bytes.getBaseOffset, bytes.getSizeInBytes, seed)
      (hash(42), hash(43), 1L)
    }
    val (a, b, n) = hashes.fold((0L, 0L, 0L)) { case (x, y) => (x._1 + y._1, x._2 + y._2, x._3 + y._3) }
    s"$n:$a:$b"
  }
}
