package org.apache.spark.sql.paralagg.plan

import org.json4s._

/**
 * The decisions of Python on an offload (`pyspark_paralagg/backends/offload.py`).
 *
 * `supervisor` is the command that starts and watches the ranks, `python` an interpreter where ranks run, `settings`
 * the supervisor's settings except files. The ranks run `plan`, with one input of plain columns for each child of the
 * operator, and write the relation to the folder `result`. Machines share the folder `staging`. Without it files are in
 * a temporary folder, or go through Spark if ranks run on executors. With `fallback` Spark computes a fixpoint that
 * ranks could not.
 */
case class OffloadSpec(
    backend: String,
    ranks: Int,
    supervisor: Seq[String],
    python: Seq[String],
    env: Map[String, String],
    settings: JObject,
    plan: JValue,
    result: String,
    staging: Option[String],
    fallback: Boolean) {

  /** Tests whether ranks run in the slots of tasks. */
  def isOnExecutors: Boolean = settings \ "launcher" == JString("spark")

  /** Tests whether ranks and the driver share files. */
  def isShared: Boolean = !isOnExecutors || staging.isDefined
}

object OffloadSpec {
  import PlanReader._

  def of(plan: JValue): Option[OffloadSpec] = plan \ "offload" match {
    case json: JObject =>
      val settings = (json \ "settings").asInstanceOf[JObject]
      Some(OffloadSpec(
          text(json \ "backend"),
          int(settings \ "ranks"),
          list(json \ "supervisor").map(text),
          list(settings \ "python").map(text),
          (settings \ "env").asInstanceOf[JObject].obj.map { case (name, value) => name -> text(value) }.toMap,
          settings,
          json \ "plan",
          text(json \ "result"),
          Option(text(json \ "staging")),
          bool(json \ "fallback")))
    case _ => None
  }
}
