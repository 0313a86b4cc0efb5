package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.paralagg.load.{DoubleWord, FloatWord, Routes}
import org.apache.spark.sql.paralagg.plan._
import org.apache.spark.sql.types._

/** Which columns of a relation may hold null in this run. A null key takes one more word, a mask, in every key. */
case class RelationShape(keys: Array[Boolean], dependents: Array[Boolean]) {
  val hasNullKeys: Boolean = keys.contains(true)
  def keyWords: Int = keys.length + (if (hasNullKeys) 1 else 0)
}

/**
 * What the data say about nulls, carried through the rules. Files declare nearly every column nullable; code that
 * handles nulls is generated only where there are some. All tasks come to the same shape, since they vote on the inputs.
 */
final class Shape(stratum: StratumSpec, routes: Routes, routeNulls: Array[Array[Boolean]]) {

  val relations: Array[RelationShape] = {
    var now = stratum.relations.indices.map { r =>
      val nulls = routeNulls(routes.base(r)).clone()
      if (routes.initial(r) >= 0) routeNulls(routes.initial(r)).indices.foreach { c =>
        nulls(c) |= routeNulls(routes.initial(r))(c)
      }
      nulls
    }.toArray
    var changed = true
    while (changed) {
      val next = now.map(_.clone())
      stratum.rules.foreach { rule =>
        val env = environment(rule, now)
        rule.emit.indices.foreach(c => next(rule.head)(c) |= isNullable(rule.emit(c), env))
      }
      stratum.relations.indices.foreach { r =>
        carryNulls(stratum.relations(r), next(r))
        followNulls(stratum.relations(r), next(r), next)
      }
      changed = next.indices.exists(r => !next(r).sameElements(now(r)))
      now = next
    }
    stratum.relations.indices.map { r =>
      val k = stratum.relations(r).keys.length
      RelationShape(now(r).take(k), now(r).drop(k))
    }.toArray
  }

  /** A row whose order is null brings nothing along: what min_by carries is null as long as only such rows came. */
  private def carryNulls(relation: RelationSpec, nulls: Array[Boolean]): Unit = {
    val k = relation.keys.length
    relation.dependents.zipWithIndex.foreach { case (d, j) => if (d.order >= 0) nulls(k + j) |= nulls(k + d.order) }
  }

  /** The columns of a user's aggregator are null together. What is copied from another relation is null where it is there. */
  private def followNulls(relation: RelationSpec, nulls: Array[Boolean], all: Array[Array[Boolean]]): Unit = {
    val k = relation.keys.length
    relation.dependents.zipWithIndex.foreach { case (d, j) =>
      d.custom.foreach { custom =>
        val first = k + j - d.part
        nulls(k + j) |= custom.columns.indices.exists(c => nulls(first + c))
      }
      d.view.foreach { view =>
        val theirs = all(view.relation)
        (0 until k).foreach(c => nulls(c) |= theirs(c))
        if (!d.merging.isCounted) nulls(k + j) |= theirs(stratum.relations(view.relation).keys.length + view.column)
      }
    }
  }

  def staticPayload(index: Int): Array[Boolean] =
    routeNulls(routes.static(index)).drop(stratum.staticIndex(index).keys.length)

  /** Which variables of a rule may be null, by name. */
  private def environment(rule: RuleSpec, relationNulls: Array[Array[Boolean]]): Map[String, Boolean] = {
    val driver = rule.driver.binds.zip(relationNulls(rule.driver.relation)).toMap
    rule.steps.foldLeft(driver - null) {
      case (env, p: ProbeSpec) =>
        val joined = p.keys.collect { case PlainVariable(name) => name -> false }
        val bound =
          if (p.kind != "join") Nil
          else if (p.recursive) p.binds.zip(relationNulls(stratum.relationIndex(p.index).relation)).toSeq
          else p.binds.zip(staticPayload(p.index)).toSeq
        (if (p.kind == "anti") env else env ++ joined) ++ bound.filter(_._1 != null)
      case (env, _: FilterSpec) => env
    }
  }

  private def isNullable(e: Expression, env: Map[String, Boolean]): Boolean =
    e.transform { case v: RuleVariable => v.copy(nullable = env(v.name)) }.nullable
}

/** The word of a dependent column before any value came in: aggregating it with a value gives the value. */
object Identity {
  def of(dependent: DependentSpec): Long = dependent.merging.identity.getOrElse {
    val bound: DataType => Long = if (dependent.merging.merge == Merge.Greater) least else greatest
    bound(dependent.column.dataType)
  }
  private def greatest(t: DataType): Long = t match {
    case DoubleType => DoubleWord.word(Double.NaN)
    case FloatType => FloatWord.word(Float.NaN)
    case BooleanType => 1L
    case _ => Long.MaxValue
  }
  private def least(t: DataType): Long = t match {
    case DoubleType => DoubleWord.word(Double.NegativeInfinity)
    case FloatType => FloatWord.word(Float.NegativeInfinity)
    case BooleanType => 0L
    case _ => Long.MinValue
  }
}
