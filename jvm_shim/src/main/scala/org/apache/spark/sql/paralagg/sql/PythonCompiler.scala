package org.apache.spark.sql.paralagg.sql

import java.util.concurrent.ConcurrentHashMap

import org.json4s._
import org.json4s.JsonDSL._

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.paralagg.{ShimVersion, StaticConfs}
import org.apache.spark.sql.paralagg.plan.PlanReader

/** Why Python refuses a program: its error, and which relation, branch (from 0) and column of a head it is about. */
case class Refusal(
    code: String,
    text: String,
    hint: String,
    relation: Option[String],
    branch: Option[Int],
    column: Option[String])

object Refusal {
  import PlanReader.{int, option, text}

  /** `answer`, if it is none. */
  def or(answer: JValue): Either[Refusal, JValue] = answer \ "error" match {
    case e: JObject =>
      Left(Refusal(
          text(e \ "code"), text(e \ "message"), option(e \ "hint")(text).getOrElse(""), option(e \ "relation")(text),
          option(e \ "branch")(int), option(e \ "column")(text)))
    case _ => Right(answer)
  }
}

/** The compiler, asked by the JVM: Python decides here too (`pyspark_paralagg/sql`). */
object PythonCompiler {
  private val Asked = Seq("spark.paralagg.broadcast.maxBytes", "spark.paralagg.climb.maxIterations")

  private val processes = new ConcurrentHashMap[(String, String), CompilerProcess]()

  /** What Python answers to `what`; a Refusal where the program is at fault. */
  def ask(what: String, request: JObject): Either[Refusal, JValue] = {
    val conf = SQLConf.get
    val settings = JObject(
      Asked.map(key => key -> Option(conf.getConfString(key, null)).fold[JValue](JNull)(JString(_))).toList)
    process().ask(("op" -> what) ~ ("version" -> ShimVersion.value) ~ ("conf" -> settings) ~ request)
  }

  private def process(): CompilerProcess = {
    val python = StaticConfs.get(StaticConfs.Python)
      .orElse(sys.env.get("PYSPARK_DRIVER_PYTHON"))
      .orElse(sys.env.get("PYSPARK_PYTHON"))
      .getOrElse("python3")
    val path = StaticConfs.get(StaticConfs.PythonPath).getOrElse("")
    processes.computeIfAbsent((python, path), _ => new CompilerProcess(python, path))
  }
}
