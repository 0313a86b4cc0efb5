package org.apache.spark.sql.paralagg.plan

import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.catalyst.expressions.Expression

/**
 * What a fixpoint computes, opaque to Catalyst (its expressions belong to the loop, not to the query plan).
 *
 * Two are equal if they would compute the same of the same inputs, whoever built them: the Plan is, but for what only
 * people read, and so are the expressions behind it. A fixpoint that is used twice, or written twice, then runs once.
 * `whole` is the one that the user asked for, where a rule made this one of it: what a run tells is found there.
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

  /** Of `whole` alone; equal fixpoints that ran as one have the same. */
  @volatile var lastRun: LastRun = new LastRun

  def planJson: String = JsonMethods.compact(json)

  lazy val program: StratumSpec = PlanReader.stratum(json, stratum, analysis.templates)

  /** Set where ranks compute it, not this engine. */
  lazy val offload: Option[OffloadSpec] = OffloadSpec.of(json)

  /** What may be computed in its stead where few dependent columns are read: `narrower` of the Plan. */
  lazy val narrower: Seq[NarrowerSpec] = PlanReader.narrower(json, stratum, relation)

  def narrowed(to: NarrowerSpec): FixpointSpec = {
    val strata = (json \ "strata").asInstanceOf[JArray].arr.updated(stratum, to.stratum)
    val own = List[JField]("inputs" -> to.inputs, "strata" -> JArray(strata), "narrower" -> JArray(Nil)) ++
      to.offload.map("offload" -> _)
    val kept = json.obj.filterNot { case (name, _) => name == "offload" || own.exists(_._1 == name) }
    new FixpointSpec(JObject(kept ++ own), stratum, relation, analysis, reason, Some(whole))
  }

  /** Reasons and texts are for people, and seconds differ from one build to the next. */
  private lazy val meaning: (JValue, Seq[Expression]) =
    (JObject(json.obj.filterNot { case (name, _) => name == "python" || name == "reasons" }), program.expressions)

  override def equals(other: Any): Boolean = other match {
    case o: FixpointSpec =>
      (o eq this) || stratum == o.stratum && relation == o.relation && meaning == o.meaning
    case _ => false
  }
  override lazy val hashCode: Int = meaning.hashCode * 31 + relation.hashCode
  override def toString: String = s"$relation (${program.name}, ${program.relationClass})"
}

/** What the last run told: its report, and why another executor ran it than the query was planned for; null before. */
final class LastRun {
  @volatile var report: String = _
  @volatile var reason: String = _
}

/**
 * A smaller stratum that has of its relation only the dependent `columns`. Each of its inputs is a slice of one of the
 * Plan's: (id there, columns).
 */
case class NarrowerSpec(
    columns: Set[String], stratum: JValue, inputs: JValue, slices: Seq[(Int, Seq[Int])], offload: Option[JValue])
