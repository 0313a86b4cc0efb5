package org.apache.spark.sql.paralagg.sql

import org.apache.spark.QueryContext
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.paralagg.ErrorCodes

/**
 * What is wrong with a recursive query, at its place in the text: an AnalysisException as Spark's own are, whose
 * condition is one of this package's codes.
 *
 * The place is in the message and in `line` and `startPosition`, and not a QueryContext as well: of an error that has
 * one, pyspark asks Spark's list of error classes for the text, in which no other package's codes can be.
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

  /** A recursive query in a session that was attached after it had started. */
  def notConfigured(name: String, at: Origin): Nothing = throw new SqlProblem(
    ErrorCodes.SqlNotConfigured,
    s"this session cannot run the recursive query $name: it was started without the extension, and ra.attach came later",
    "run it in spark.newSession(), write it with df.recursive_agg, or start the session by ra.configure(builder), or " +
      "by --jars <the shim's jar> --conf spark.sql.extensions=org.apache.spark.sql.paralagg.ParalaggExtensions",
    at)

  private def message(code: String, text: String, hint: String, at: Origin): String = {
    val advice = if (hint.isEmpty) "" else s" Hint: $hint"
    val shown = at.getQueryContext.map("\n" + _.summary).mkString
    s"[$code] $text.$advice SQLSTATE: $SqlState$shown"
  }
}
