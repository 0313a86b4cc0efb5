package org.apache.spark.sql.paralagg.state

import java.util.Arrays

import org.apache.spark.sql.paralagg.load.{Block, WordColumn}

/**
 * An input grouped by its key columns (CSR). The rows of group g are `offsets(g)` until `offsets(g + 1)`.
 *
 * Groups are ids of `keys`. If the rule joins on the relation's whole key, this is the relation's own map: the id of
 * the driver's row *is* the group, and the loop looks nothing up. If targets are resolved at load, rows with a target
 * on this task come first, until `splits(g)`. This saves the loop an unpredictable branch at each row.
 *
 * `payload` has the columns that the rules read, in 32 bits if all of their words fit (`Shape`); others are null.
 */
final class StaticIndex(
    val keys: KeyMap,
    val offsets: Array[Int],
    val splits: Array[Int],
    val payload: Array[Column],
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
      new StaticIndex(keys, longer, longerSplits, payload, nulls)
    }
  def rows: Int = offsets(groups)

  /** Returns an index of the same keys and kinds of columns, without rows. */
  def withoutRows: StaticIndex = new StaticIndex(
    keys, new Array[Int](1), if (splits == null) null else Array.emptyIntArray,
    payload.map(c => if (c == null) null else c.sameKind(0)), payload.map(_ => null))

  /** Returns the index with these of its rows alone, by ascending positions. */
  def only(rows: Array[Int]): StaticIndex = {
    def shifted(positions: Array[Int]) = {
      var k = 0
      positions.map { at =>
        while (k < rows.length && rows(k) < at) k += 1
        k
      }
    }
    new StaticIndex(
      keys, shifted(offsets), if (splits == null) null else shifted(splits),
      payload.map(c => if (c == null) null else c.only(rows)),
      nulls.map(n => if (n == null) null else rows.map(n(_))))
  }

  /** Returns the groups with rows, ascending. */
  def filled: Array[Int] = Array.range(0, groups).filter(g => offsets(g) < offsets(g + 1))

  /** Returns the bytes in arrays. */
  def bytes: Long = 4L * offsets.length + payload.filter(c => c != null && !c.isMapped).map(_.bytes).sum
}

/** The position of each row in a [[StaticIndex]]: `rows(i)` is that of row i. */
case class Placement(offsets: Array[Int], splits: Array[Int], rows: Column) {

  /** Writes values of the rows to `out` in the order of the index; returns `out`. */
  def order(values: Column, out: Column): Column = {
    var i = 0
    while (i < values.length) {
      out.set(rows.int(i), values.int(i))
      i += 1
    }
    out
  }

  def order(values: Array[Int]): Array[Int] = order(Column(values), Column(new Array[Int](values.length))).ints
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

  def place(ids: Array[Int], groups: Int, targets: Null): Placement = place(Column(ids), groups, null: Column)

  /**
   * Sorts rows by group id (counting sort). `groups` is greater than all ids, which positions replace. `targets` are ids
   * of the rows that a rule derives, complements for those of other tasks. With it, rows with a target on this task come
   * first in each group.
   */
  def place(ids: Column, groups: Int, targets: Column): Placement = {
    val offsets = new Array[Int](groups + 1)
    val splits = if (targets == null) null else new Array[Int](groups)
    var i = 0
    while (i < ids.length) {
      val id = ids.int(i)
      offsets(id) += 1
      if (targets != null && targets.int(i) >= 0) splits(id) += 1
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
    i = 0
    while (i < ids.length) {
      val free = if (targets != null && targets.int(i) < 0) nextRemote else next
      val id = ids.int(i)
      ids.set(i, free(id))
      free(id) += 1
      i += 1
    }
    Placement(offsets, splits, ids)
  }

  /** Copies the rows to their positions. `column` makes a payload column; those that no rule reads stay null. */
  def build(
      blocks: Array[Block],
      keyColumns: Int,
      keys: KeyMap,
      placement: Placement,
      isRead: Array[Boolean],
      column: Int => Column): StaticIndex = {
    val place = placement.rows
    val payload = isRead.indices.map(c => if (isRead(c)) column(c) else null).toArray
    val nulls = new Array[Array[Boolean]](isRead.length)
    isRead.indices.filter(isRead(_)).foreach { c =>
      var at = 0
      blocks.foreach { b =>
        val in = b.column(keyColumns + c)
        if (payload(c).isWide) placeWords(in, b.rows, place, at, payload(c))
        else placeNarrow(in, b.rows, place, at, payload(c))
        at += b.rows
        if (b.nulls(keyColumns + c) != null) {
          if (nulls(c) == null) nulls(c) = new Array[Boolean](place.length)
          b.nulls(keyColumns + c).stream().forEach(row => nulls(c)(place.int(at - b.rows + row)) = true)
        }
      }
    }
    new StaticIndex(keys, placement.offsets, placement.splits, payload, nulls)
  }

  private def placeWords(in: WordColumn, n: Int, place: Column, at: Int, out: Column): Unit = {
    var r = 0
    while (r < n) {
      out.set(place.int(at + r), in(r))
      r += 1
    }
  }

  private def placeNarrow(in: WordColumn, n: Int, place: Column, at: Int, out: Column): Unit = {
    var r = 0
    while (r < n) {
      out.set(place.int(at + r), in(r).toInt)
      r += 1
    }
  }

  /** Passes the range of these columns of blocks to a map of one-word keys. */
  def expect(map: KeyMap, columns: Iterator[(Block, Int)]): Unit = map match {
    case long: LongKeyMap =>
      var least = Long.MaxValue
      var most = Long.MinValue
      var n = 0L
      columns.filter(_._1.rows > 0).foreach { case (b, c) =>
        val (low, high) = b.limits(c)
        least = math.min(least, low)
        most = math.max(most, high)
        n += b.rows
      }
      if (n > 0) long.expect(least, most, n)
    case _ =>
  }
}
