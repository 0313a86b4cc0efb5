package org.apache.spark.sql.paralagg.load

import java.nio.ByteBuffer
import java.util.{Arrays, BitSet}

/**
 * The words of a column: 64 bits each, or 32 bits as distances from the least word if they are near each other. Keys of
 * a graph mostly are, and then take half of the memory, of files and of messages.
 *
 * @param least the least word
 * @param most the greatest word
 */
final class WordColumn private (longs: Array[Long], distances: Array[Int], val least: Long, val most: Long) {

  def apply(row: Int): Long =
    if (distances == null) longs(row) else least + java.lang.Integer.toUnsignedLong(distances(row))

  def size: Int = if (distances == null) longs.length else distances.length

  /** The bytes in memory. */
  def bytes: Long = WordColumn.bytes(size, least, most)

  def toArray: Array[Long] =
    if (distances == null) longs
    else {
      val words = new Array[Long](size)
      copy(0, words, 0, size)
      words
    }

  /** Returns the column with `entries(word)` instead of each word; rows in `nulls` (or null) keep a word without meaning. */
  def translated(entries: Int => Int, nulls: BitSet): WordColumn = {
    val words = new Array[Long](size)
    var i = 0
    while (i < words.length) {
      if (nulls == null || !nulls.get(i)) words(i) = entries(apply(i).toInt)
      i += 1
    }
    WordColumn(words, words.length)
  }

  /** Copies `n` words from row `from` on. */
  def copy(from: Int, out: Array[Long], at: Int, n: Int): Unit = {
    var i = 0
    while (i < n) {
      out(at + i) = apply(from + i)
      i += 1
    }
  }

  /** Writes the words only: the reader knows the size and the limits. */
  def write(out: ByteBuffer): Unit = {
    if (distances == null) out.asLongBuffer().put(longs) else out.asIntBuffer().put(distances)
    out.position(out.position() + bytes.toInt)
  }
}

object WordColumn {

  /** Returns a column that has these words, without a look at them. */
  def apply(words: Array[Long]): WordColumn = new WordColumn(words, null, Long.MinValue, Long.MaxValue)

  /** Returns a column of the first `n` of `words`, which it copies. */
  def apply(words: Array[Long], n: Int): WordColumn = {
    var least = if (n == 0) 0L else Long.MaxValue
    var most = if (n == 0) 0L else Long.MinValue
    var i = 0
    while (i < n) {
      val w = words(i)
      least = math.min(least, w)
      most = math.max(most, w)
      i += 1
    }
    if (isNear(least, most)) {
      val distances = new Array[Int](n)
      i = 0
      while (i < n) {
        distances(i) = (words(i) - least).toInt
        i += 1
      }
      new WordColumn(null, distances, least, most)
    } else new WordColumn(Arrays.copyOf(words, n), null, least, most)
  }

  /** Reads `n` words that [[WordColumn.write]] wrote. */
  def read(in: ByteBuffer, n: Int, least: Long, most: Long): WordColumn = {
    val (longs, distances) =
      if (isNear(least, most)) (null, new Array[Int](n)) else (new Array[Long](n), null)
    if (longs == null) in.asIntBuffer().get(distances) else in.asLongBuffer().get(longs)
    in.position(in.position() + bytes(n, least, most).toInt)
    new WordColumn(longs, distances, least, most)
  }

  /** Returns the bytes of `n` words within these limits. */
  def bytes(n: Int, least: Long, most: Long): Long = n.toLong * (if (isNear(least, most)) 4 else 8)

  private def isNear(least: Long, most: Long): Boolean = {
    val distance = most - least // negative if it leaves 64 bits
    distance >= 0 && distance <= 0xffffffffL
  }
}
