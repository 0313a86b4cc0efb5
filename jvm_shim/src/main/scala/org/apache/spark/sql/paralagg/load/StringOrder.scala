package org.apache.spark.sql.paralagg.load

import org.apache.spark.unsafe.array.LongArray
import org.apache.spark.unsafe.memory.MemoryBlock
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.collection.unsafe.sort.RadixSort

/**
 * Sorts strings by their bytes, eight bytes at a time: Spark's radix sort by the first eight, then the strings with
 * equal ones by the next eight, and so on.
 */
private[load] final class StringOrder private (texts: Texts, ids: Array[Int]) {
  import StringOrder._

  private def sort(from: Int, until: Int, depth: Int): Unit =
    if (until - from <= Few) insert(from, until)
    else if (depth == Deepest) compare(from, until)
    else {
      val n = until - from
      val pairs = new LongArray(MemoryBlock.fromLongArray(new Array[Long](4 * n))) // (id, key)*, as much for the sort
      var i = 0
      while (i < n) {
        pairs.set(2 * i, ids(from + i))
        pairs.set(2 * i + 1, key(ids(from + i), depth))
        i += 1
      }
      val sorted = RadixSort.sortKeyPrefixArray(pairs, 0, n, 0, 7, false, false)
      i = 0
      while (i < n) {
        ids(from + i) = pairs.get(sorted + 2 * i).toInt
        i += 1
      }
      i = 0
      while (i < n) {
        val first = i
        val equal = pairs.get(sorted + 2 * i + 1)
        while (i < n && pairs.get(sorted + 2 * i + 1) == equal) i += 1
        if (i - first > 1) sortEqual(from + first, from + i, depth)
      }
    }

  /** Sorts strings with equal bytes so far: those that end there come first, and differ in zeros at their end only. */
  private def sortEqual(from: Int, until: Int, depth: Int): Unit = {
    var ended = from
    var i = from
    while (i < until) {
      if (texts.get(ids(i)).numBytes <= 8 * (depth + 1)) {
        val id = ids(i)
        ids(i) = ids(ended)
        ids(ended) = id
        ended += 1
      }
      i += 1
    }
    insert(from, ended)
    sort(ended, until, depth + 1)
  }

  private def key(id: Int, depth: Int): Long = {
    val s = texts.get(id)
    val rest = s.numBytes - 8 * depth
    if (rest <= 0) 0L
    else UTF8String.fromAddress(s.getBaseObject, s.getBaseOffset + 8 * depth, rest).getPrefix
  }

  private def insert(from: Int, until: Int): Unit = {
    var i = from + 1
    while (i < until) {
      val id = ids(i)
      val s = texts.get(id)
      var at = i
      while (at > from && texts.get(ids(at - 1)).compareTo(s) > 0) {
        ids(at) = ids(at - 1)
        at -= 1
      }
      ids(at) = id
      i += 1
    }
  }

  private def compare(from: Int, until: Int): Unit = {
    val sorted = ids.slice(from, until).sortWith((a, b) => texts.get(a).compareTo(texts.get(b)) < 0)
    System.arraycopy(sorted, 0, ids, from, sorted.length)
  }
}

private[load] object StringOrder {

  /** So many strings are sorted one by one. */
  private val Few = 24

  /** After so many times eight equal bytes, whole strings are compared. */
  private val Deepest = 64

  /** Returns the words of all strings, which are distinct, in the order of their bytes. */
  def of(texts: Texts): Array[Int] = {
    val ids = Array.range(0, texts.size)
    new StringOrder(texts, ids).sort(0, ids.length, 0)
    ids
  }
}
