package org.apache.spark.sql.paralagg.load

/** A growable array of words. */
final class LongBuffer(initial: Int = 16) {
  var array: Array[Long] = new Array[Long](initial)
  var size: Int = 0

  def add(word: Long): Unit = {
    if (size == array.length) reserve(1)
    array(size) = word
    size += 1
  }

  /** Makes room for `more` words. Hot loops do not call it: growing inside them prevents optimisations of the JIT. */
  def reserve(more: Int): Unit = if (size + more > array.length) {
    val needed = math.max(size.toLong + more, array.length.toLong * 2)
    array = java.util.Arrays.copyOf(array, math.min(needed, Int.MaxValue - 8).toInt)
  }

  def trimmed: Array[Long] = if (size == array.length) array else java.util.Arrays.copyOf(array, size)
}
