package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.Dictionary
import org.apache.spark.sql.paralagg.plan.StratumSpec

/**
 * The state that generated code accesses: parts, indexes, resolved targets, strings. One instance a task.
 *
 * @param baseIds ids of the base rows, by relation, block and row
 * @param isShared whether all static indexes are the same in all tasks of the executor, not only those that are
 *                 `everywhere`
 */
final class LoopState(
    val me: Int,
    val tasks: Int,
    val strings: Dictionary,
    val parts: Array[RelationPart],
    val statics: Map[Int, StaticIndex],
    val indexes: Map[Int, RelationIndex],
    val resolved: Array[Array[Int]],
    val baseIds: Array[Array[Array[Int]]],
    isShared: Boolean = false) {
  def part(relation: Int): RelationPart = parts(relation)
  def staticIndex(index: Int): StaticIndex = statics(index)
  def relationIndex(index: Int): RelationIndex = indexes(index)

  /** This task's share of the static indexes in bytes. */
  def staticBytes(stratum: StratumSpec, gang: Gang): Long = stratum.staticIndexes.map { i =>
    statics(i.id).bytes / (if (isShared || i.isShared) gang.localTasks else 1)
  }.sum

  /** Returns the state of a task that works alone, over the same keys and static indexes, without rows. */
  def sibling: LoopState = new LoopState(
    0, 1, strings, parts.map(_.sibling), statics, indexes, resolved, parts.map(_ => Array.empty[Array[Int]]),
    isShared = true)

  /** Resets all rows for a traced run; ids and indexes stay. */
  def restartTraced(): Unit = {
    parts.foreach(_.restartTraced())
    indexes.values.foreach { i =>
      if (i.spec.copy) i.part.restartTraced()
      i.clear()
    }
  }
}
