package org.apache.spark.sql.paralagg.state

/** The address of a row in a traced run as one word: relation, task, id on that task. */
object RowAddress {
  def of(relation: Int, task: Int, id: Int): Long = relation.toLong << 48 | task.toLong << 32 | id

  def relation(address: Long): Int = (address >>> 48).toInt
  def task(address: Long): Int = (address >>> 32 & 0xffff).toInt
  def id(address: Long): Int = address.toInt
}
