package org.apache.spark.sql.paralagg.state

/** A row of a traced run as one word: its relation, its task, its id there. */
object RowAddress {
  def of(relation: Int, task: Int, id: Int): Long = relation.toLong << 48 | task.toLong << 32 | id
}
