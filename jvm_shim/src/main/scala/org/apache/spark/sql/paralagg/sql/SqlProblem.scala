package org.apache.spark.sql.paralagg.sql

import org.apache.spark.QueryContext
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin

/**
 * What is wrong with a recursive query, at its place in the text: an AnalysisException as Spark's own are, whose
 * condition is one of this package's codes.
 *
 * The place is in the message and in `line` and `startPosition`, and not a QueryContext as well: of an error that has one,
 * pyspark asks Spark's list of error classes for the text, in which no other package's codes can be.
 */
class SqlProblem(code: String, text: String, hint: String, at: Origin)
    extends AnalysisException(
      SqlProblem.message(code, text, hint, at),
      at.line,
      at.startPosition,
      None,
      Some(code),
      Map.empty[String, String],
      Array.empty[QueryContext]) {
  override def getSqlState: String = SqlProblem.SqlState
}

object SqlProblem {
  private val SqlState = "42836" // the standard's for recursion that it does not allow

  private def message(code: String, text: String, hint: String, at: Origin): String = {
    val advice = if (hint.isEmpty) "" else s" Hint: $hint"
    val shown = at.getQueryContext.map("\n" + _.summary).mkString
    s"[$code] $text.$advice SQLSTATE: $SqlState$shown"
  }
}
