package org.apache.spark.sql.paralagg

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SessionState
import org.apache.spark.sql.paralagg.sql.RecursionParser

/**
 * The SQL of a session that started before `ra.attach`. Its analyzer takes no further rules, so a recursive query fails
 * with a hint instead of Spark's syntax error. Sessions derived from it have all extensions.
 */
object AttachedSql extends Logging {

  def prepare(session: SparkSession): Unit = {
    new ParalaggExtensions().apply(session.extensions) // for newSession()
    val state = session.sessionState
    try {
      val parser = classOf[SessionState].getDeclaredField("sqlParser")
      parser.setAccessible(true)
      parser.set(state, new RecursionParser(parser.get(state).asInstanceOf[ParserInterface], isConfigured = false))
    } catch {
      case e: ReflectiveOperationException => logWarning("recursive queries in SQL need ra.configure, not ra.attach", e)
      case e: RuntimeException => logWarning("recursive queries in SQL need ra.configure, not ra.attach", e)
    }
  }
}
