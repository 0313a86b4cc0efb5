package org.apache.spark.sql.paralagg.plan

import org.json4s._

/**
 * How ranks compute a stratum, all of it decided by Python (`pyspark_paralagg/backends/offload.py`).
 *
 * `supervisor` are the words of the command that starts and watches the ranks, `python` those of an interpreter where
 * ranks run, `settings` what it is told beside the names of files, `plan` what the ranks run: one input of plain
 * columns for each child of the operator. `result` is the name of the folder that they write the relation to. The
 * folder `staging` is what machines share; without it files lie in a temporary one here, and where ranks run on
 * executors rows go through Spark. With `fallback` Spark computes what the ranks could not.
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

  /** Whether ranks run in the slots of tasks. */
  def isOnExecutors: Boolean = settings \ "launcher" == JString("spark")

  /** Whether ranks see the driver's files. */
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
