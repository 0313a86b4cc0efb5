package org.apache.spark.sql.paralagg.state

import scala.collection.mutable

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.{Block, Dictionary, Owner, Routes, WordColumn}
import org.apache.spark.sql.paralagg.plan.{RuleSpec, StratumSpec}

/**
 * The targets of rules whose head's key comes from the rows of a static index. They are resolved once for each of these
 * rows at load, so that the loop looks nothing up.
 *
 * Create it after the maps of keys have their expected range. It adds keys without a base row to `parts`. `isCached`:
 * the rows are so many that each key is worth an entry of a cache.
 */
private[paralagg] final class Targets(
    stratum: StratumSpec,
    routes: Routes,
    parts: Array[RelationPart],
    gang: Gang,
    strings: Dictionary,
    blocks: Int => Array[Block],
    isCached: Boolean = true) {

  /** For heads of one-word keys in a narrow range: targets resolved so far, for any rule. */
  private val near = mutable.Map.empty[Int, Option[NearTargets]]

  private def nearTargets(relation: Int): Option[NearTargets] = near.getOrElseUpdate(
    relation,
    parts(relation).keys match {
      case keys: LongKeyMap if isCached =>
        keys.range.map { case (low, size) => new NearTargets(low, new Array[Int](size)) }
      case _ => None
    })

  /** Writes the target of each row of the index' blocks to `out`: the id of a key of this task, or a ghost's complement. */
  def resolve(rule: RuleSpec, out: Column): Column =
    resolve(rule, blocks(routes.static(rule.resolvingProbe.index)), out)

  def resolve(rule: RuleSpec, rows: Array[Block], out: Column): Column = {
    val p = parts(rule.head)
    val columns = rule.target.payload.indices.map(stratum.targetColumn(rule, _)).toArray
    val owner = new Owner(p.spec, p.spec.distributeBy, p.shape.hasNullKeys, gang.tasks, strings)
    val key = new Array[Long](p.shape.keyWords)
    var at = 0
    rows.foreach { b =>
      nearTargets(p.index) match {
        case Some(near) =>
          near.resolve(b.column(columns(0)), b.rows, out, at) { word =>
            key(0) = word
            lookup(p, key, owner)
          }
        case None =>
          val in = columns.map(b.column)
          var i = 0
          while (i < b.rows) {
            BlockKeys.fill(key, b, columns, in, i, p.shape.hasNullKeys)
            out.set(at + i, lookup(p, key, owner))
            i += 1
          }
      }
      at += b.rows
    }
    out
  }

  private def lookup(p: RelationPart, key: Array[Long], owner: Owner): Int = {
    val id = p.keys.find(key)
    if (id >= 0) id
    else {
      val ghost = p.ghosts.find(key)
      if (ghost >= 0) ~ghost
      else {
        val task = owner.taskOf(key)
        if (task == gang.part) p.keys.add(key) else ~p.addGhost(key, task)
      }
    }
  }
}

/**
 * A cache of targets for keys in a narrow range, by distance from the least key: one random access instead of two maps.
 * An entry is 0 if unresolved, `id + 1` for a key of this task, the complement of the id for a ghost.
 */
private[paralagg] final class NearTargets(low: Long, entries: Array[Int]) {

  /** Writes the targets of `n` words to `out` from `at` on; calls `lookup` once for each distinct word. */
  def resolve(words: WordColumn, n: Int, out: Column, at: Int)(lookup: Long => Int): Unit = {
    var i = 0
    while (i < n) {
      val distance = (words(i) - low).toInt
      val entry = entries(distance)
      out.set(
        at + i,
        if (entry > 0) entry - 1
        else if (entry < 0) entry
        else {
          val target = lookup(words(i))
          entries(distance) = if (target >= 0) target + 1 else target
          target
        })
      i += 1
    }
  }
}
