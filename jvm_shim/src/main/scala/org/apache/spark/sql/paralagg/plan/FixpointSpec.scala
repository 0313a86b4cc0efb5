package org.apache.spark.sql.paralagg.plan

import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.paralagg.plan.PlanReader._

/**
 * The specification of a fixpoint, opaque to Catalyst: its expressions belong to the loop, not to the query plan.
 *
 * Two are equal if they compute the same from the same inputs: if their Plans, except texts for people, and the
 * expressions behind them are equal. So a fixpoint that is used or written twice runs once. `whole` is the user's
 * fixpoint if a rule derived this one from it; it has the report of the last run.
 */
class FixpointSpec private (
    json: JObject,
    val stratum: Int,
    val relation: String,
    val analysis: Analysis,
    val reason: String,
    origin: Option[FixpointSpec]) {

  def this(planJson: String, stratum: Int, relation: String, analysis: Analysis, reason: String) =
    this(JsonMethods.parse(planJson).asInstanceOf[JObject], stratum, relation, analysis, reason, None)

  val whole: FixpointSpec = origin.getOrElse(this)

  /** The last run, of `whole` only; equal fixpoints that ran as one share it. */
  @volatile var lastRun: LastRun = new LastRun

  def planJson: String = JsonMethods.compact(json)

  lazy val program: StratumSpec = PlanReader.stratum(json, stratum, analysis.templates)

  /** The offload, if ranks compute the fixpoint. */
  lazy val offload: Option[OffloadSpec] = option(json \ "offload")(new OffloadSpec(_))

  /** The relations of the stratum that one run computes for several queries; none if each is computed by its own. */
  lazy val together: Seq[String] = texts(json \ "together").toSeq

  /** Where tasks keep their states after the run, and the states from which it goes on. */
  lazy val kept: Option[KeptSpec] = option(json \ "kept")(KeptSpec(_))

  /** The Plan's `narrower`: smaller strata for queries that read only some dependent columns. */
  lazy val narrower: Seq[NarrowerSpec] = list(json \ "narrower")
    .filter(n => int(n \ "position") == stratum && text(n \ "relation") == relation).map(new NarrowerSpec(_))

  def narrowed(narrower: NarrowerSpec): FixpointSpec = {
    val replaced = List[JField]("inputs" -> narrower.inputs, "narrower" -> JArray(Nil)) ++
      narrower.offload.map("offload" -> _)
    changed(narrower.stratum,
      json.obj.filterNot { case (name, _) =>
        name == "offload" || replaced.exists(_._1 == name)
      } ++ replaced)
  }

  /** Returns the specification of a run that may end once the relation has `rows` rows; ranks compute all. */
  def endingAt(rows: Int): FixpointSpec = {
    val ending = strata(stratum).asInstanceOf[JObject]
    changed(JObject(ending.obj.filterNot(_._1 == "ends_at") :+ ("ends_at" -> JInt(rows))), json.obj)
  }

  /** Returns the specification of a run whose strings may get words after those of an earlier one. */
  def appendingStrings: FixpointSpec = {
    val appending = strata(stratum).asInstanceOf[JObject]
    changed(
      JObject(appending.obj.filterNot(_._1 == "appends_strings") :+ ("appends_strings" -> JBool(true))), json.obj)
  }

  private def strata: List[JValue] = (json \ "strata").asInstanceOf[JArray].arr

  private def changed(own: JValue, fields: List[JField]): FixpointSpec = new FixpointSpec(
    JObject(fields.filterNot(_._1 == "strata") :+ ("strata" -> JArray(strata.updated(stratum, own)))), stratum,
    relation, analysis, reason, Some(whole))

  /**
   * The parts to compare, without reasons and texts for people, and seconds that differ in each build. As a text:
   * objects of JSON are compared as sets, which hashes their members at each level again.
   */
  lazy val meaning: (String, Seq[Expression]) = {
    val compared = json.obj.filterNot { case (name, _) => name == "python" || name == "reasons" }
    (JsonMethods.compact(JObject(compared)), program.expressions)
  }

  override def equals(other: Any): Boolean = other match {
    case o: FixpointSpec =>
      (o eq this) || stratum == o.stratum && relation == o.relation && meaning == o.meaning
    case _ => false
  }
  override lazy val hashCode: Int = meaning.hashCode * 31 + relation.hashCode
  override def toString: String =
    s"$relation (${program.name}, ${program.relationClass}${program.endsAt.fold("")(n => s", ends at $n rows")})"
}

/**
 * The names of the states that a run takes, if it goes on from some, and that it leaves (`driver.KeptStates`).
 * `base` is what base rows there are: `whole`, all of them, which the state keeps; `all` of them, not to be kept;
 * `changes` of those that it has kept, with the removed ones as initial rows; or `new` ones only. They are `other` ones
 * if a run starts again, with only the keys and indexes of the state (`driver.KeptIndexes`).
 */
final case class KeptSpec(take: Option[Int], put: Option[Int], base: String, falls: Option[FallsSpec] = None) {
  def keepsBase: Boolean = base == "whole"
  def hasAllBase: Boolean = keepsBase || base == "all"
  def restarts: Boolean = base == KeptSpec.Other
}

object KeptSpec {
  val Other = "other"

  def apply(json: JValue): KeptSpec = KeptSpec(
    option(json \ "take")(int), option(json \ "put")(int), text(json \ "base"),
    option(json \ "falls")(new FallsSpec(_)))
}

/**
 * How a run with removed rows finds the rows that fall. A derivation supports a row of the same value of the dependent
 * column `by` of its relation, or, if that is -1, of the same key. Fractions are the same within the relative
 * `tolerance` of the relation. No more than `most` rows may fall. `byParents`: if the state knows the row that each row was derived from, only a derivation from
 * that row supports it. The result has a last column `flag`: true for rows that leave, false for rows that change.
 */
final class FallsSpec(json: JValue) extends Serializable {
  val by: Array[Int] = ints(json \ "by")
  val tolerance: Array[Double] = texts(json \ "tolerance").map(_.toDouble)
  val byParents: Boolean = bool(json \ "by_parents")
  val most: Int = int(json \ "most")
  val flag: String = text(json \ "flag")
}

/** The last run: its report, and the reason if not the planned executor ran it; null before. */
final class LastRun {
  @volatile var report: String = _
  @volatile var reason: String = _
}

/**
 * A smaller stratum whose relation has only the dependent `columns`. Each of its inputs is a slice of an input of the
 * Plan: (id of that input, columns).
 */
final class NarrowerSpec(json: JValue) {
  val columns: Set[String] = texts(json \ "columns").toSet
  val stratum: JValue = json \ "stratum"
  val inputs: JValue = json \ "inputs"
  val slices: Seq[(Int, Seq[Int])] = list(json \ "slices").map(s => (int(s \ "input"), ints(s \ "columns").toSeq))
  val offload: Option[JValue] = option(json \ "offload")(identity)
}
