package org.apache.spark.sql.paralagg.state

import java.util.Arrays

import org.apache.spark.sql.paralagg.load.Block

/**
 * An input grouped by its key columns (CSR). The rows of group g are `offsets(g)` until `offsets(g + 1)`.
 *
 * Groups are ids of `keys`. If the rule joins on the relation's whole key, this is the relation's own map: the id of
 * the driver's row *is* the group, and the loop looks nothing up. If targets are resolved at load, rows with a target
 * on this task come first, until `splits(g)`. This saves the loop an unpredictable branch at each row.
 *
 * A payload column that the rules read is in `payload`, or in `narrow` if all of its words fit into 32 bits (`Shape`).
 */
final class StaticIndex(
    val keys: KeyMap,
    val offsets: Array[Int],
    val splits: Array[Int],
    val payload: Array[Array[Long]],
    val narrow: Array[Array[Int]],
    val nulls: Array[Array[Boolean]]) {
  def groups: Int = offsets.length - 1

  /** Returns the index with `n` groups: those that its keys have got since are empty. */
  def withGroups(n: Int): StaticIndex =
    if (n == groups) this
    else {
      val longer = Arrays.copyOf(offsets, n + 1)
      Arrays.fill(longer, groups + 1, n + 1, rows)
      val longerSplits = if (splits == null) null else Arrays.copyOf(splits, n)
      if (splits != null) Arrays.fill(longerSplits, groups, n, rows)
      new StaticIndex(keys, longer, longerSplits, payload, narrow, nulls)
    }
  def rows: Int = offsets(groups)

  /** Returns the number of groups with rows. */
  def filledGroups: Int = {
    var n = 0
    var g = 0
    while (g < groups) {
      if (offsets(g) < offsets(g + 1)) n += 1
      g += 1
    }
    n
  }
  def bytes: Long =
    4L * (offsets.length + narrow.filter(_ != null).map(_.length.toLong).sum) +
      payload.filter(_ != null).map(_.length * 8L).sum
}

/** The position of each row in a [[StaticIndex]]: `rows(i)` is that of row i. */
case class Placement(offsets: Array[Int], splits: Array[Int], rows: Array[Int]) {

  /** Reorders values of the rows to the order of the index. */
  def order(values: Array[Int]): Array[Int] = {
    val out = new Array[Int](values.length)
    var i = 0
    while (i < values.length) {
      out(rows(i)) = values(i)
      i += 1
    }
    out
  }
}

object Placement {

  /** Replaces each number by the sum of those before it. */
  def sumBefore(numbers: Array[Int]): Unit = {
    var sum = 0
    var i = 0
    while (i < numbers.length) {
      val n = numbers(i)
      numbers(i) = sum
      sum += n
      i += 1
    }
  }
}

object StaticIndex {

  /**
   * Sorts rows by group id (counting sort). `groups` is greater than all ids. `targets` are ids of the rows that a rule
   * derives, complements for those of other tasks. With it, rows with a target on this task come first in each group.
   */
  def place(ids: Array[Int], groups: Int, targets: Array[Int]): Placement = {
    val offsets = new Array[Int](groups + 1)
    val splits = if (targets == null) null else new Array[Int](groups)
    var i = 0
    while (i < ids.length) {
      offsets(ids(i)) += 1
      if (targets != null && targets(i) >= 0) splits(ids(i)) += 1
      i += 1
    }
    Placement.sumBefore(offsets)
    i = 0
    while (splits != null && i < groups) {
      splits(i) += offsets(i)
      i += 1
    }
    val next = Arrays.copyOf(offsets, math.max(1, groups))
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

  /** Copies the rows to their positions; payload columns that no rule reads (not `isRead`) stay null. */
  def build(
      blocks: Array[Block],
      keyColumns: Int,
      keys: KeyMap,
      placement: Placement,
      isRead: Array[Boolean],
      isNarrow: Array[Boolean]): StaticIndex = {
    val place = placement.rows
    val columns = isRead.indices
    val payload = columns.map(c => if (isRead(c) && !isNarrow(c)) new Array[Long](place.length) else null).toArray
    val narrow = columns.map(c => if (isRead(c) && isNarrow(c)) new Array[Int](place.length) else null).toArray
    val nulls = new Array[Array[Boolean]](isRead.length)
    columns.filter(isRead(_)).foreach { c =>
      var at = 0
      blocks.foreach { b =>
        val in = b.column(keyColumns + c)
        if (isNarrow(c)) placeNarrow(in, b.rows, place, at, narrow(c))
        else placeWords(in, b.rows, place, at, payload(c))
        at += b.rows
        if (b.nulls(keyColumns + c) != null) {
          if (nulls(c) == null) nulls(c) = new Array[Boolean](place.length)
          b.nulls(keyColumns + c).stream().forEach(row => nulls(c)(place(at - b.rows + row)) = true)
        }
      }
    }
    new StaticIndex(keys, placement.offsets, placement.splits, payload, narrow, nulls)
  }

  private def placeWords(in: Array[Long], n: Int, place: Array[Int], at: Int, out: Array[Long]): Unit = {
    var r = 0
    while (r < n) {
      out(place(at + r)) = in(r)
      r += 1
    }
  }

  private def placeNarrow(in: Array[Long], n: Int, place: Array[Int], at: Int, out: Array[Int]): Unit = {
    var r = 0
    while (r < n) {
      out(place(at + r)) = in(r).toInt
      r += 1
    }
  }

  /** Passes the range of these columns to a map of one-word keys. */
  def expect(map: KeyMap, columns: Iterator[(Array[Long], Int)]): Unit = map match {
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
