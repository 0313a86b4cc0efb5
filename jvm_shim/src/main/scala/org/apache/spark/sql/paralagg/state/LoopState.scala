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
    val resolved: Array[Column],
    val baseIds: Array[Array[Array[Int]]],
    isShared: Boolean = false) {
  def part(relation: Int): RelationPart = parts(relation)
  def staticIndex(index: Int): StaticIndex = statics(index)
  def relationIndex(index: Int): RelationIndex = indexes(index)

  /** The edges by target of rules that add so, once a round needs them; null for others. */
  val targetSums: Array[TargetSums] = new Array(resolved.length)

  /** By relation: rows derived for keys that rules compute, of this task and of others. The runner of rules sets them. */
  val derived: Array[DerivedRows] = new Array(parts.length)
  val derivedGhosts: Array[DerivedRows] = new Array(parts.length)

  /** The rows of probed sides that rules have read since the last votes: edges visited, in graphs. */
  var work: Long = 0

  /** The bytes sent since the last votes. */
  var sentBytes: Long = 0

  /** This task's share of the static indexes, and of what is resolved by their rows, in bytes; without mapped columns. */
  def staticBytes(stratum: StratumSpec, gang: Gang): Long = {
    def share(bytes: Long, isShared: Boolean) = if (isShared) bytes / gang.localTasks else bytes
    val indexes = stratum.staticIndexes.map(i => share(statics(i.id).bytes, isShared || i.isShared)).sum
    val targets = resolved.indices.filter(r => resolved(r) != null && !resolved(r).isMapped).map { r =>
      share(resolved(r).length.toLong * LoopBuilder.bytesOfTarget(stratum.rules(r)), isShared)
    }.sum
    indexes + targets
  }

  /** Returns a state of other parts over the same keys, with some static indexes and targets replaced. */
  def over(others: Array[RelationPart], sides: Map[Int, StaticIndex], targets: Map[Int, Column]): LoopState =
    new LoopState(
      me, tasks, strings, others, statics ++ sides, indexes,
      resolved.indices.map(rule => targets.getOrElse(rule, resolved(rule))).toArray, baseIds)

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
