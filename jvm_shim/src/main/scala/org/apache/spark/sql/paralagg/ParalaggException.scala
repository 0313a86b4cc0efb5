package org.apache.spark.sql.paralagg

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.execution.QueryExecutionException

/** An error of this package inside Spark; `code` is the stable code that Python's `getCondition()` returns. */
class ParalaggException(code: String, val text: String, val hint: String, cause: Throwable = null)
    extends QueryExecutionException(s"[$code] $text" + (if (hint.isEmpty) "" else s" Hint: $hint"), cause)
    with SparkThrowable {
  def getCondition: String = code // overrides nothing in Spark 3.5
  override def getErrorClass: String = code
  override def getSqlState: String = "XX000"
  override def getMessageParameters: java.util.Map[String, String] = java.util.Map.of()
}
