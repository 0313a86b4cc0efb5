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
 * An analysed plan over [[RecursiveReference]]s, as a maintained table needs it (pyspark_paralagg/delta/program.py):
 * how it reads each reference, in one order that `substitute` shares; what else it depends on; and its text.
 *
 * {{{ {"reads": [{"name", "blocker", "branches": {"0": 1}}], "others": ["table x"], "unstable": "rand()" | null, "text", "rows"} }}}
 *
 * A read is blocked by the first operator above it that may take rows away when rows come in below. Without a blocker
 * the plan is linear in that read: the new rows in its place, and all rows elsewhere, give what is new above.
 * `branches` are the unions above it, numbered through, each with the child that it stands below: what stands below
 * another one of them has no part in what is new.
 */
object Reads {

  def json(session: SparkSession, plan: LogicalPlan, relation: String): String = {
    val reads = mutable.ArrayBuffer.empty[JValue]
    visit(plan, relation, Place(None, Nil)) { (r, place) =>
      reads += ("name" -> r.name) ~ ("blocker" -> place.blocker) ~
        ("branches" -> JObject(place.branches.map { case (union, child) => union.toString -> JInt(child) }))
      r
    }
    val leaves = plan.collectWithSubqueries { case leaf if leaf.children.isEmpty => leaf }
    JsonMethods.compact(
      ("reads" -> JArray(reads.toList)) ~ ("others" -> leaves.flatMap(nameOfOther).distinct) ~
        ("unstable" -> unstable(plan)) ~ ("text" -> text(plan)) ~
        ("rows" -> leaves.filter(isConstant).map(fingerprint(session, _))))
  }

  /** The plan with the k-th read replaced by the k-th of `plans`, whose columns are found by name. */
  def substitute(plan: LogicalPlan, plans: Seq[LogicalPlan]): LogicalPlan = {
    val next = plans.iterator
    visit(plan, "", Place(None, Nil)) { (r, _) =>
      val rows = fresh(next.next())
      Project(
        r.output.map { a =>
          val column = rows.output.find(_.name == a.name).get
          Alias(column, a.name)(exprId = a.exprId)
        },
        rows)
    }
  }

  /** New names for the columns of the leaves: the same rows may stand in a plan several times. */
  private def fresh(plan: LogicalPlan): LogicalPlan = plan.transformUpWithNewOutput {
    case leaf: MultiInstanceRelation if leaf.asInstanceOf[LogicalPlan].children.isEmpty =>
      val made = leaf.newInstance()
      made -> leaf.asInstanceOf[LogicalPlan].output.zip(made.output)
  }

  private case class Place(blocker: Option[String], branches: List[(Int, Int)])

  private def visit(plan: LogicalPlan, relation: String, place: Place)(
      replace: (RecursiveReference, Place) => LogicalPlan): LogicalPlan = {
    var unions = 0
    def below(plan: LogicalPlan, place: Place): LogicalPlan = plan match {
      case r: RecursiveReference => replace(r, place)
      case _ =>
        val inside = plan.mapExpressions(_.transform { case s: SubqueryExpression =>
          s.withNewPlan(below(s.plan, place.copy(blocker = place.blocker.orElse(Some("a subquery")))))
        })
        val union = unions
        if (plan.isInstanceOf[Union]) unions += 1
        val places = inside.children.indices.map { at =>
          val branches = if (plan.isInstanceOf[Union]) (union, at) :: place.branches else place.branches
          Place(place.blocker.orElse(blocks(plan, at, relation)), branches)
        }.iterator
        inside.mapChildren(child => below(child, places.next()))
    }
    below(plan, place)
  }

  /** What keeps new rows of child `at` from being new rows above, and nothing else; None where nothing does. */
  private def blocks(plan: LogicalPlan, at: Int, relation: String): Option[String] = plan match {
    case _: Project | _: Filter | _: Union | _: Distinct | _: SubqueryAlias | _: ResolvedHint | _: Sort | _: Generate |
        _: RepartitionOperation => None
    case d: Deduplicate if d.child.outputSet.subsetOf(AttributeSet(d.keys)) => None
    case _: Deduplicate => Some("dropDuplicates by some columns")
    case j: Join => joined(j.joinType, at)
    case Intersect(_, _, false) => None
    case Except(_, _, false) => if (at == 0) None else Some("the right side of EXCEPT")
    case a: Aggregate if !a.aggregateExpressions.exists(_.exists(_.isInstanceOf[AggregateExpression])) => None
    // The compiler has seen to it that this aggregate is the head's own.
    case a: Aggregate if a.exists { case r: RecursiveReference => r.name == relation; case _ => false } => None
    case _: Aggregate => Some("an aggregate")
    case other => Some(other.nodeName)
  }

  private def joined(how: JoinType, at: Int): Option[String] = how match {
    case _: InnerLike | LeftSemi => None
    case LeftOuter | LeftAnti if at == 0 => None
    case RightOuter if at == 1 => None
    case LeftAnti => Some("the right side of an anti join")
    case _ => Some(s"the optional side of a ${how.sql.toLowerCase(java.util.Locale.ROOT)} join")
  }

  private def isConstant(leaf: LogicalPlan): Boolean = leaf match {
    case _: LocalRelation | _: LogicalRDD => true
    case _ => false
  }

  /** Rows from elsewhere, which may change unseen. */
  private def nameOfOther(leaf: LogicalPlan): Option[String] = leaf match {
    case _: RecursiveReference | _: OneRowRelation | _: Range | _: CTERelationRef => None
    case constant if isConstant(constant) => None
    case r: LogicalRelation => Some(r.catalogTable.fold(r.relation.toString)(_.identifier.unquotedString))
    case r: HiveTableRelation => Some(r.tableMeta.identifier.unquotedString)
    case r: DataSourceV2Relation => Some(r.name)
    case other => Some(other.nodeName)
  }

  /** An expression whose value is another one each time. */
  private def unstable(plan: LogicalPlan): Option[String] = plan.collectWithSubqueries { case p =>
    p.expressions.flatMap(_.find(e => !e.deterministic && e.children.forall(_.deterministic))) ++
      p.expressions.flatMap(_.find(e => e.children.isEmpty && e.containsPattern(CURRENT_LIKE)))
  }.flatten.headOption.map(_.prettyName)

  /** The plan with its columns numbered as they appear, the same in every session. */
  private def text(plan: LogicalPlan): String = {
    val whole = SQLConf.get.clone()
    whole.setConf(SQLConf.MAX_TO_STRING_FIELDS, Int.MaxValue)
    val shown = SQLConf.withExistingConf(whole)(plan.treeString(false, false, Int.MaxValue, false, false))
    val numbers = mutable.HashMap.empty[String, Int]
    val code = plan.collectWithSubqueries { case p =>
      p.expressions.flatMap(_.collect { case u: PythonUDF => u.func.command.mkString(",").hashCode })
    }.flatten
    "#(\\d+)".r.replaceAllIn(shown, m => s"#${numbers.getOrElseUpdate(m.group(1), numbers.size)}") +
      code.mkString("\n", ",", "")
  }

  /** Of rows that stand in the program itself: two sums of hashes, whatever order they come in. */
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
