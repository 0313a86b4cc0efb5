package org.apache.spark.sql.paralagg.driver

import org.json4s.{JDouble, JInt, JValue}

/** The summary of a finished run: iterations, rows, and the seconds of its phases. */
final case class RunSummary(iterations: Int, tuples: Long, load: Double, loop: Double, store: Double)

object RunSummary {
  val None: RunSummary = RunSummary(0, 0, 0, 0, 0)

  /** Reads the summary from the report of a gang or of ranks. */
  def of(report: JValue): RunSummary = {
    def seconds(phase: String): Double = report \ "seconds" \ phase match {
      case JDouble(n) => n
      case JInt(n) => n.toDouble
      case _ => 0.0
    }
    val (iterations, tuples) = (number(report \ "iterations").toInt, number(report \ "tuples"))
    RunSummary(iterations, tuples, seconds("load"), seconds("loop"), seconds("store"))
  }

  def number(value: JValue): Long = value match {
    case JInt(n) => n.toLong
    case _ => 0L
  }
}
