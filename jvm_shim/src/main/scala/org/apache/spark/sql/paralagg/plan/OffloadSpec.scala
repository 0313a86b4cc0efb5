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
final class OffloadSpec(json: JValue) {
  import PlanReader._

  val settings: JObject = (json \ "settings").asInstanceOf[JObject]
  val backend: String = text(json \ "backend")
  val ranks: Int = int(settings \ "ranks")
  val supervisor: Seq[String] = list(json \ "supervisor").map(text)
  val python: Seq[String] = list(settings \ "python").map(text)
  val env: Map[String, String] = (settings \ "env").asInstanceOf[JObject].obj.map { case (k, v) => k -> text(v) }.toMap
  val plan: JValue = json \ "plan"
  val result: String = text(json \ "result")
  val staging: Option[String] = option(json \ "staging")(text)
  val fallback: Boolean = bool(json \ "fallback")

  /** Tests whether ranks run in the slots of tasks. */
  def isOnExecutors: Boolean = settings \ "launcher" == JString("spark")

  /** Tests whether ranks and the driver share files. */
  def isShared: Boolean = !isOnExecutors || staging.isDefined
}
