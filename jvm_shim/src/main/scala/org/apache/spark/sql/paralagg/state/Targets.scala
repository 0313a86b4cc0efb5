package org.apache.spark.sql.paralagg.state

import scala.collection.mutable

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.{Block, Dictionary, Owner, Routes}
import org.apache.spark.sql.paralagg.plan.{RuleSpec, StratumSpec}

/**
 * Targets of rules whose head's key comes from the rows of a static index: found once for each of these rows at load, so
 * that the loop looks nothing up.
 *
 * To be made when the keys' maps know what range to expect. Keys that no base row has become ids or ghosts of `parts` here.
 */
private[paralagg] final class Targets(
    stratum: StratumSpec,
    routes: Routes,
    parts: Array[RelationPart],
    gang: Gang,
    strings: Dictionary,
    blocks: Int => Array[Block]) {

  /** For heads of one-word keys in a narrow range: what was found already, by any rule. */
  private val near = mutable.Map.empty[Int, Option[NearTargets]]

  private def nearTargets(relation: Int): Option[NearTargets] = near.getOrElseUpdate(
    relation,
    parts(relation).keys match {
      case keys: LongKeyMap => keys.range.map { case (low, size) => new NearTargets(low, new Array[Int](size)) }
      case _ => None
    })

  /** For each row of the index' blocks the id of the head's key: own ids as they are, ghosts as their complement. */
  def resolve(rule: RuleSpec): Array[Int] = {
    val p = parts(rule.head)
    val rows = blocks(routes.static(rule.resolvingProbe.index))
    val out = new Array[Int](rows.map(_.rows).sum)
    val columns = rule.target.payload.indices.map(stratum.targetColumn(rule, _)).toArray
    val owner = new Owner(p.spec, p.spec.distributeBy, p.shape.hasNullKeys, gang.tasks, strings)
    val key = new Array[Long](p.shape.keyWords)
    var at = 0
    rows.foreach { b =>
      nearTargets(p.index) match {
        case Some(near) =>
          near.resolve(b.words(columns(0)).array, b.rows, out, at) { word =>
            key(0) = word
            lookup(p, key, owner)
          }
        case None =>
          var i = 0
          while (i < b.rows) {
            BlockKeys.fill(key, b, columns, i, p.shape.hasNullKeys)
            out(at + i) = lookup(p, key, owner)
            i += 1
          }
      }
      at += b.rows
    }
    out
  }

  private def lookup(p: RelationPart, key: Array[Long], owner: Owner): Int = {
    val own = p.keys.find(key)
    if (own >= 0) own
    else {
      val known = p.ghosts.find(key)
      if (known >= 0) ~known
      else {
        val o = owner.of(key)
        if (o == gang.part) p.keys.add(key) else ~p.addGhost(key, o)
      }
    }
  }
}

private[paralagg] object Targets {

  /** A rule's targets from the order of the blocks to the order of the index. */
  def order(targets: Array[Int], placement: Placement): Array[Int] = {
    val out = new Array[Int](targets.length)
    var i = 0
    while (i < targets.length) {
      out(placement.rows(i)) = targets(i)
      i += 1
    }
    out
  }
}

/**
 * Ids of keys that lie near each other, by their distance from the least: one random access where two maps would take two.
 * 0 is unknown, `id + 1` a key of this task, the complement of its id a ghost.
 */
private[paralagg] final class NearTargets(low: Long, found: Array[Int]) {

  /** The targets of `n` words, from `at` on in `out`; `lookup` is asked once for each word. */
  def resolve(words: Array[Long], n: Int, out: Array[Int], at: Int)(lookup: Long => Int): Unit = {
    var i = 0
    while (i < n) {
      val near = (words(i) - low).toInt
      val known = found(near)
      out(at + i) =
        if (known > 0) known - 1
        else if (known < 0) known
        else {
          val target = lookup(words(i))
          found(near) = if (target >= 0) target + 1 else target
          target
        }
      i += 1
    }
  }
}
