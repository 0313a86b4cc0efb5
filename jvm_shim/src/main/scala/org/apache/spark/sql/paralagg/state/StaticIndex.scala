package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.load.Block

/**
 * An input grouped by its key columns (CSR): rows of group g are `offsets(g)` until `offsets(g + 1)`.
 *
 * Groups are ids of `keys`, which is the relation's own map where the rule joins on the relation's whole key: then the id
 * of the driver's row *is* the group, and the loop looks nothing up. Where rows stand for targets that are resolved at load,
 * those of this task come first, until `splits(g)`: the loop need not ask at each row, a branch nobody could predict.
 */
final class StaticIndex(
    val keys: KeyMap,
    val offsets: Array[Int],
    val splits: Array[Int],
    val payload: Array[Array[Long]],
    val nulls: Array[Array[Boolean]]) {
  def groups: Int = offsets.length - 1
  def bytes: Long = offsets.length * 4L + payload.filter(_ != null).map(_.length * 8L).sum
}

/** Where each row goes: `rows(i)` is the place of row i, groups as in [[StaticIndex]]. */
case class Placement(offsets: Array[Int], splits: Array[Int], rows: Array[Int])

object StaticIndex {

  /**
   * Sorts rows by group id (counting sort). `groups` is at least the largest id plus one. With `targets` (ids of the rows
   * that a rule derives from them, complements for other tasks' rows) own targets come first in each group.
   */
  def place(ids: Array[Int], groups: Int, targets: Array[Int]): Placement = {
    val offsets = new Array[Int](groups + 1)
    val splits = if (targets == null) null else new Array[Int](groups)
    var i = 0
    while (i < ids.length) {
      offsets(ids(i) + 1) += 1
      if (targets != null && targets(i) >= 0) splits(ids(i)) += 1
      i += 1
    }
    i = 0
    while (i < groups) {
      offsets(i + 1) += offsets(i)
      if (splits != null) splits(i) += offsets(i)
      i += 1
    }
    val next = java.util.Arrays.copyOf(offsets, math.max(1, groups))
    val nextRemote = if (splits == null) null else splits.clone()
    val rows = new Array[Int](ids.length)
    i = 0
    while (i < ids.length) {
      val free = if (targets != null && targets(i) < 0) nextRemote else next
      rows(i) = free(ids(i))
      free(ids(i)) += 1
      i += 1
    }
    Placement(offsets, splits, rows)
  }

  /** Puts the rows in their places; payload columns that no rule reads (`wanted`) stay null. */
  def build(blocks: Array[Block], keyColumns: Int, keys: KeyMap, placement: Placement, wanted: Array[Boolean])
      : StaticIndex = {
    val place = placement.rows
    val payload = wanted.map(w => if (w) new Array[Long](place.length) else null)
    val nulls = new Array[Array[Boolean]](wanted.length)
    wanted.indices.filter(wanted(_)).foreach { c =>
      val out = payload(c)
      var at = 0
      blocks.foreach { b =>
        val in = b.words(keyColumns + c).array
        var r = 0
        while (r < b.rows) {
          out(place(at)) = in(r)
          at += 1
          r += 1
        }
        if (b.nulls(keyColumns + c) != null) {
          if (nulls(c) == null) nulls(c) = new Array[Boolean](place.length)
          b.nulls(keyColumns + c).stream().forEach(row => nulls(c)(place(at - b.rows + row)) = true)
        }
      }
    }
    new StaticIndex(keys, placement.offsets, placement.splits, payload, nulls)
  }

  /** Tells a map of one-word keys what range to expect of these columns. */
  def expect(map: KeyMap, columns: Iterable[(Array[Long], Int)]): Unit = map match {
    case long: LongKeyMap =>
      var min = Long.MaxValue
      var max = Long.MinValue
      var n = 0L
      columns.foreach { case (a, size) =>
        var i = 0
        while (i < size) {
          val x = a(i)
          if (x < min) min = x
          if (x > max) max = x
          i += 1
        }
        n += size
      }
      if (n > 0) long.expect(min, max, n)
    case _ =>
  }
}
