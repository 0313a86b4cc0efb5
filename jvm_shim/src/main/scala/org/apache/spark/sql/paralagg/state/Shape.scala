package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.paralagg.Arithmetic
import org.apache.spark.sql.paralagg.load.{DoubleWord, FloatWord, Routes}
import org.apache.spark.sql.paralagg.plan._
import org.apache.spark.sql.types._

/** The columns of a relation that may hold null in this run. If a key column may, each key ends with a null mask. */
case class RelationShape(keys: Array[Boolean], dependents: Array[Boolean]) {
  val hasNullKeys: Boolean = keys.contains(true)
  def keyWords: Int = keys.length + (if (hasNullKeys) 1 else 0)
}

/** The contents of a route's columns in this run: whether any is null, whether all words of a payload fit into 32 bits. */
case class RouteContents(nulls: Array[Boolean], narrow: Array[Boolean])

/**
 * The nullability and the width of columns in this run: nulls of the inputs, propagated through the rules. Files
 * declare nearly every column nullable; code for nulls is generated only if there are some. Since tasks vote on the
 * inputs, all have one shape.
 */
final class Shape(stratum: StratumSpec, routes: Routes, val contents: Array[RouteContents]) {
  private def routeNulls(route: Int): Array[Boolean] = contents(route).nulls

  val relations: Array[RelationShape] = {
    var current = stratum.relations.indices.map { r =>
      val nulls = routeNulls(routes.base(r)).clone()
      if (routes.initial(r) >= 0) routeNulls(routes.initial(r)).indices.foreach { c =>
        nulls(c) |= routeNulls(routes.initial(r))(c)
      }
      nulls
    }.toArray
    var changed = true
    while (changed) {
      val next = current.map(_.clone())
      stratum.rules.foreach { rule =>
        val env = environment(rule, current)
        rule.emit.indices.foreach(c => next(rule.head)(c) |= isNullable(rule.emit(c), env))
      }
      stratum.relations.indices.foreach(r => propagate(stratum.relations(r), next(r), next))
      changed = next.indices.exists(r => !next(r).sameElements(current(r)))
      current = next
    }
    stratum.relations.indices.map { r =>
      val k = stratum.relations(r).keys.length
      RelationShape(current(r).take(k), current(r).drop(k))
    }.toArray
  }

  /**
   * Propagates nulls of an order to the columns that min_by carries (a row with a null order carries nothing), among the
   * columns of a user's aggregator, and from a relation to the columns that follow it.
   */
  private def propagate(relation: RelationSpec, nulls: Array[Boolean], all: Array[Array[Boolean]]): Unit = {
    val k = relation.keys.length
    relation.dependents.zipWithIndex.foreach { case (d, j) =>
      if (d.order >= 0) nulls(k + j) |= nulls(k + d.order)
      d.custom.foreach { custom =>
        val first = k + j - d.part
        nulls(k + j) |= custom.columns.indices.exists(c => nulls(first + c))
      }
      d.view.foreach { view =>
        val source = all(view.relation)
        (0 until k).foreach(c => nulls(c) |= source(c))
        if (!d.merging.isCounted) nulls(k + j) |= source(stratum.relations(view.relation).keys.length + view.column)
      }
    }
  }

  def staticPayload(index: Int): Array[Boolean] =
    routeNulls(routes.static(index)).drop(stratum.staticIndex(index).keys.length)

  /** Returns for each payload column if it is stored in 32 bits. */
  def narrowPayload(index: Int): Array[Boolean] =
    contents(routes.static(index)).narrow.drop(stratum.staticIndex(index).keys.length)

  /** Returns for each variable of a rule, by name, if it may be null. */
  private def environment(rule: RuleSpec, relationNulls: Array[Array[Boolean]]): Map[String, Boolean] = {
    val driver = rule.driver.binds.zip(relationNulls(rule.driver.relation)).toMap
    rule.steps.foldLeft(driver - null) {
      case (env, p: ProbeSpec) =>
        val joined = p.keys.collect { case RuleVariable(name, _, _) => name -> false }
        val bound =
          if (p.kind != "join") Nil
          else if (p.recursive) p.binds.zip(relationNulls(stratum.relationIndex(p.index).relation)).toSeq
          else p.binds.zip(staticPayload(p.index)).toSeq
        (if (p.kind == "anti") env else env ++ joined) ++ bound.filter(_._1 != null)
      case (env, _: FilterSpec) => env
    }
  }

  /** Spark declares every division nullable; in ANSI mode a division by zero is an error, not null. */
  private def isNullable(e: Expression, env: Map[String, Boolean]): Boolean = e.transformUp {
    case v: RuleVariable => v.copy(nullable = env(v.name))
    case d: DivModLike if isTotal(d) => KnownNotNull(d)
    case p: Pmod if isTotal(p) => KnownNotNull(p)
  }.nullable

  private def isTotal(division: BinaryArithmetic): Boolean =
    Arithmetic.isAnsi(division) && !division.left.nullable && !division.right.nullable
}

/** The identity of a dependent column's aggregate, as a word: aggregating it with a value gives the value. */
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
