package org.apache.spark.sql.paralagg.state

import java.util.Arrays

/**
 * The base rows of one task's part of a relation, with their numbers of copies: a kept state has them, so that a row
 * that falls gets its base rows again. They are sorted. A row is the id of its key, the words of its values as
 * combiners read them, and the number of copies.
 */
final class BaseRows private (private val words: Array[Long], valueWords: Int) {
  import BaseRows._
  private val stride = valueWords + 2

  def size: Int = words.length / stride
  def bytes: Long = 8L * words.length

  /** Returns these rows with others added, or removed by negative numbers of copies; None if some are not there. */
  def plus(other: BaseRows): Option[BaseRows] = {
    val out = new Array[Long](words.length + other.words.length)
    var (i, j, n) = (0, 0, 0)
    while (i < words.length || j < other.words.length) {
      val order = if (i == words.length) 1 else if (j == other.words.length) -1 else compare(i, other, j)
      System.arraycopy(if (order <= 0) words else other.words, if (order <= 0) i else j, out, n, stride)
      if (order == 0) out(n + stride - 1) += other.words(j + stride - 1)
      if (order <= 0) i += stride
      if (order >= 0) j += stride
      if (out(n + stride - 1) < 0) return None
      if (out(n + stride - 1) > 0) n += stride
    }
    Some(new BaseRows(Arrays.copyOf(out, n), valueWords))
  }

  /** Tests whether a row is among these; its words begin at `from`. */
  def contains(id: Int, values: Array[Long], from: Int): Boolean = {
    var at = firstOf(id) * stride
    while (at < words.length && words(at) == id && compareWords(words, at + 1, values, from, valueWords) != 0)
      at += stride
    at < words.length && words(at) == id
  }

  /** Returns the same rows, to be removed by `plus`. */
  def negative: BaseRows = {
    val out = words.clone()
    (stride - 1 until out.length by stride).foreach(at => out(at) = -out(at))
    new BaseRows(out, valueWords)
  }

  /** Returns the rows of these keys, each once or `asOften` as there are copies: their ids, and the words of all rows. */
  def of(ids: Array[Int], asOften: Boolean): (Array[Int], Array[Long]) = {
    val distinct = ids.flatMap { id =>
      var at = firstOf(id)
      Iterator.continually { at += 1; at - 1 }.takeWhile(r => r < size && words(r * stride) == id).toArray[Int]
    }
    val found = if (asOften) distinct.flatMap(r => Array.fill(copies(r).toInt)(r)) else distinct
    (found.map(r => words(r * stride).toInt), found.flatMap(r => words.slice(r * stride + 1, (r + 1) * stride - 1)))
  }

  /** Returns the number of rows with smaller ids. */
  private def firstOf(id: Int): Int = {
    var (low, high) = (0, size)
    while (low < high) {
      val middle = (low + high) >>> 1
      if (words(middle * stride) < id) low = middle + 1 else high = middle
    }
    low
  }

  private def copies(row: Int): Long = words(row * stride + stride - 1)

  private def compare(at: Int, other: BaseRows, otherAt: Int): Int =
    compareWords(words, at, other.words, otherAt, valueWords + 1)
}

object BaseRows {

  /** Returns rows as they come: the id of each row, and the words of all rows, in several pieces. */
  def apply(pieces: Seq[(Array[Int], Array[Long])], valueWords: Int): BaseRows = {
    val stride = valueWords + 2
    val all = new Array[Long](pieces.map(_._1.length).sum * stride)
    var at = 0
    for ((ids, values) <- pieces; row <- ids.indices) {
      all(at) = ids(row)
      System.arraycopy(values, row * valueWords, all, at + 1, valueWords)
      all(at + stride - 1) = 1
      at += stride
    }
    val out = new Array[Long](all.length)
    var n = 0
    sorted(all, stride).foreach { row =>
      if (n > 0 && compareWords(out, n - stride, all, row * stride, stride - 1) == 0) out(n - 1) += 1
      else {
        System.arraycopy(all, row * stride, out, n, stride)
        n += stride
      }
    }
    new BaseRows(Arrays.copyOf(out, n), valueWords)
  }

  /** Returns the numbers of the rows in order: sorted by id, then those of an id by their other words. */
  private def sorted(rows: Array[Long], stride: Int): Array[Int] = {
    val byId = Array.tabulate(rows.length / stride)(r => rows(r * stride) << 32 | r)
    Arrays.sort(byId)
    val order = byId.map(_.toInt)
    var from = 0
    while (from < order.length) {
      var to = from + 1
      while (to < order.length && (byId(to) >>> 32) == (byId(from) >>> 32)) to += 1
      if (to > from + 1 && stride > 2) {
        val group = order.slice(from, to).sortWith((a, b) =>
          compareWords(rows, a * stride, rows, b * stride, stride - 1) < 0)
        System.arraycopy(group, 0, order, from, group.length)
      }
      from = to
    }
    order
  }

  private def compareWords(a: Array[Long], from: Int, b: Array[Long], other: Int, n: Int): Int = {
    var i = 0
    while (i < n && a(from + i) == b(other + i)) i += 1
    if (i == n) 0 else java.lang.Long.compare(a(from + i), b(other + i))
  }
}
