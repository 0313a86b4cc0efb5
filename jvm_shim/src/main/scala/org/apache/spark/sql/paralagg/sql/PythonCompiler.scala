package org.apache.spark.sql.paralagg.sql

import java.util.concurrent.ConcurrentHashMap

import org.json4s._
import org.json4s.JsonDSL._

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.paralagg.{ShimVersion, StaticConfs}
import org.apache.spark.sql.paralagg.plan.PlanReader

/** A refusal of a program by Python: the error, and the relation, branch (from 0) and column of a head concerned. */
final class Refusal(error: JValue) {
  import PlanReader.{int, option, text => string}

  val code: String = string(error \ "code")
  val text: String = string(error \ "message")
  val hint: String = option(error \ "hint")(string).getOrElse("")
  val relation: Option[String] = option(error \ "relation")(string)
  val branch: Option[Int] = option(error \ "branch")(int)
  val column: Option[String] = option(error \ "column")(string)
}

/** The client of the compiler in Python (`pyspark_paralagg/sql`), which makes all decisions for SQL, too. */
object PythonCompiler {
  private val SentConfs = Seq("spark.paralagg.broadcast.maxBytes", "spark.paralagg.climb.maxIterations")

  private val processes = new ConcurrentHashMap[(String, String), CompilerProcess]()

  /** Returns Python's answer to the operation `op`, or a Refusal of the program. */
  def request(op: String, fields: JObject): Either[Refusal, JValue] = {
    val conf = SQLConf.get
    val settings = JObject(
      SentConfs.map(key => key -> Option(conf.getConfString(key, null)).fold[JValue](JNull)(JString(_))).toList)
    process().answer(("op" -> op) ~ ("version" -> ShimVersion.value) ~ ("conf" -> settings) ~ fields)
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
