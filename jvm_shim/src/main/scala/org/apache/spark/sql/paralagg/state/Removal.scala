package org.apache.spark.sql.paralagg.state

import java.util.Arrays

/**
 * Rows that a [[StaticIndex]] loses: for each row to remove, one that is equal in all that the loop reads, and has the
 * same targets. Columns are copied in one pass, run by run.
 *
 * @param ids the group of each row to remove
 * @param payload the columns of these rows that the loop reads, null for others, with their `nulls`
 * @param targets the columns of targets of the index' rows, each with that of the rows to remove
 */
private[state] final class Removal(
    index: StaticIndex, ids: Column, payload: Array[Column], nulls: Array[Array[Boolean]],
    targets: Seq[(Column, Column)]) {
  private val read = payload.indices.filter(payload(_) != null).toArray
  private val taken = new java.util.BitSet(index.rows)

  /** The positions of the removed rows, ascending. */
  private val removed: Array[Int] = {
    val found = Array.range(0, ids.length).map(find).filter(_ >= 0)
    Arrays.sort(found)
    found
  }

  /** The number of rows to remove that the index does not have. */
  def missing: Int = ids.length - removed.length

  private def find(row: Int): Int = {
    val g = ids.int(row)
    var at = if (g < index.groups) index.offsets(g) else index.rows
    val end = if (g < index.groups) index.offsets(g + 1) else index.rows
    while (at < end && (taken.get(at) || !isEqual(row, at))) at += 1
    if (at == end) -1
    else {
      taken.set(at)
      at
    }
  }

  private def isEqual(row: Int, at: Int): Boolean =
    targets.forall { case (old, gone) => old.int(at) == gone.int(row) } && read.forall { c =>
      val isNull = nulls(c) != null && nulls(c)(row)
      isNull == (index.nulls(c) != null && index.nulls(c)(at)) && (isNull ||
        (if (payload(c).isWide) payload(c).long(row) == index.payload(c).long(at)
         else payload(c).int(row) == index.payload(c).int(at)))
    }

  def apply(): StaticIndex = new StaticIndex(
    index.keys, shifted(index.offsets), if (index.splits == null) null else shifted(index.splits),
    index.payload.map(c => if (c == null) null else without(c)), index.nulls.map(withoutNulls))

  /** Replaces positions in the index by those without the removed rows; they ascend. */
  private def shifted(positions: Array[Int]): Array[Int] = {
    var k = 0
    positions.map { at =>
      while (k < removed.length && removed(k) < at) k += 1
      at - k
    }
  }

  /** Returns the values of the rows that stay. */
  def without(old: Column): Column = {
    val out = old.sameKind(old.length - removed.length)
    runs((from, at, n) => old.copy(from, out, at, n))
    out
  }

  private def withoutNulls(old: Array[Boolean]): Array[Boolean] =
    if (old == null) null
    else {
      val out = new Array[Boolean](old.length - removed.length)
      runs((from, at, n) => System.arraycopy(old, from, out, at, n))
      out
    }

  private def runs(copy: (Int, Int, Int) => Unit): Unit = {
    var from = 0
    var k = 0
    while (k <= removed.length) {
      val until = if (k < removed.length) removed(k) else index.rows
      if (until > from) copy(from, from - k, until - from)
      from = until + 1
      k += 1
    }
  }
}
