package org.apache.spark.sql.paralagg.sql

import org.apache.spark.{QueryContext, SPARK_VERSION}
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.paralagg.{ErrorCodes, SparkMinor}

/**
 * An error in a recursive query with its position in the text: an AnalysisException with a code of this package as
 * condition.
 *
 * The position is in the message and in `line` and `startPosition`, but there is no QueryContext. With one, pyspark
 * would look up the text in Spark's list of error classes, which has no codes of other packages.
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
  private val SqlState = "42836" // the standard's state for invalid recursion

  /** Throws the error for a recursive query in a session that was attached after its start. */
  def notConfigured(name: String, at: Origin): Nothing = throw new SqlProblem(
    ErrorCodes.SqlNotConfigured,
    s"this session cannot run the recursive query $name: it was started without the extension, before ra.attach",
    "run it in spark.newSession(), write it with df.recursive_agg, or start the session by ra.configure(builder), or " +
      "by --jars <the shim's jar> --conf spark.sql.extensions=org.apache.spark.sql.paralagg.ParalaggExtensions",
    at)

  /** Throws the error for a recursive query where Spark parses none. */
  def noRecursion(cause: ParseException): Nothing = throw new SqlProblem(
    ErrorCodes.SqlNoRecursion,
    s"Spark $SPARK_VERSION does not parse WITH RECURSIVE",
    "use Spark 4.0 or later; or write the query in Python, as df.recursive_agg(keys, aggs, step), or as rules: " +
      "ra.datalog(spark, \"dist(y, min(d + w)) :- dist(x, d), edge(x, y, w). …\", edge=edges)",
    cause.start)

  private def message(code: String, text: String, hint: String, at: Origin): String = {
    val advice = if (hint.isEmpty) "" else s" Hint: $hint"
    val summary = at.getQueryContext.map("\n" + SparkMinor.summary(_)).mkString
    s"[$code] $text.$advice SQLSTATE: $SqlState$summary"
  }
}
