package org.apache.spark.sql.paralagg.state

import java.util.Arrays

/**
 * The places of new rows in a [[StaticIndex]]. They come after the rows that their groups had; with `targets`, those
 * with a target on this task come after such rows. Columns are copied in one pass, run by run.
 *
 * @param ids the group of each new row
 * @param targets the target of each new row, a complement if another task has it; null if that decides no place
 * @param groups the number of groups with the new ones
 */
private[state] final class Insertion(index: StaticIndex, ids: Column, targets: Column, groups: Int) {
  private val n = ids.length

  /** The new rows in the order of the index: group, then the remote ones last, then their own order. */
  private val order: Array[Long] = {
    val keys = Array.tabulate(n)(r => (ids.int(r).toLong << 32 | (if (isRemote(r)) 1L << 31 else 0L)) + r)
    Arrays.sort(keys)
    keys
  }

  private def isRemote(row: Int): Boolean = targets != null && targets.int(row) < 0
  private def row(k: Int): Int = (order(k) & Int.MaxValue).toInt
  private def group(k: Int): Int = (order(k) >>> 32).toInt

  /** Returns the old row before which the new row at place k of the order lies. */
  private def before(k: Int): Int = {
    val g = group(k)
    if (g >= index.groups) index.rows
    else if (index.splits != null && !isRemote(row(k))) index.splits(g)
    else index.offsets(g + 1)
  }

  /** Returns the groups that got rows, each once. */
  def touched: Array[Int] = Array.tabulate(n)(group).distinct

  def offsets: Array[Int] = shifted(index.withGroups(groups).offsets)

  def splits: Array[Int] =
    if (index.splits == null) null
    else {
      val out = shifted(index.withGroups(groups).splits)
      (0 until n).foreach(k => if (!isRemote(row(k))) out(group(k)) += 1)
      out
    }

  /** Adds the number of new rows of earlier groups to each group's entry. */
  private def shifted(old: Array[Int]): Array[Int] = {
    val out = old.clone()
    var k = 0
    var g = 0
    while (g < out.length) {
      while (k < n && group(k) < g) k += 1
      out(g) += k
      g += 1
    }
    out
  }

  /** Returns the values of old and new rows in their order. */
  def merge(old: Column, added: Column): Column = {
    val out = old.sameKind(old.length + n)
    runs((from, at, rows) => old.copy(from, out, at, rows), (row, at) => added.copy(row, out, at, 1))
    out
  }

  /** As `merge`, for the nulls of a column; null stands for none. */
  def mergeNulls(old: Array[Boolean], added: Array[Boolean]): Array[Boolean] =
    if (old == null && added == null) null
    else {
      val out = new Array[Boolean](index.rows + n)
      runs(
        (from, at, rows) => if (old != null) System.arraycopy(old, from, out, at, rows),
        (row, at) => if (added != null) out(at) = added(row))
      out
    }

  private def runs(copy: (Int, Int, Int) => Unit, insert: (Int, Int) => Unit): Unit = {
    var from = 0
    var k = 0
    while (k < n) {
      val until = before(k)
      if (until > from) copy(from, from + k, until - from)
      from = until
      insert(row(k), from + k)
      k += 1
    }
    if (index.rows > from) copy(from, from + n, index.rows - from)
  }
}
