package org.apache.spark.sql.paralagg.state

/**
 * A map from keys of `arity` words to dense ids 0, 1, 2, …, in the order of insertion (docs/design.md, "Data in
 * the loop").
 *
 * `words` holds the keys flat, `arity` words an id. Generated kernels call `find` and `add` in the loop only where a
 * key cannot be resolved at load.
 */
abstract class KeyMap(val arity: Int) {
  var words: Array[Long] = new Array[Long](16 * math.max(1, arity))
  var size: Int = 0

  /** Returns the id of `key`, or -1. */
  def find(key: Array[Long]): Int

  /** Returns the id of the key in `key` from `from` on; adds the key if it is new. */
  def add(key: Array[Long], from: Int = 0): Int

  final def word(id: Int, column: Int): Long = words(id * arity + column)

  protected def append(key: Array[Long], from: Int): Int = {
    if ((size + 1) * arity > words.length) growWords()
    System.arraycopy(key, from, words, size * arity, arity)
    size += 1
    size - 1
  }

  protected def growWords(): Unit =
    words = java.util.Arrays.copyOf(words, math.min(words.length.toLong * 2, Int.MaxValue - 8).toInt)
}

object KeyMap {
  def apply(arity: Int): KeyMap = if (arity == 1) new LongKeyMap else new TupleKeyMap(arity)

  @inline private[paralagg] def mix(x: Long): Long = {
    val h = x * 0x9e3779b97f4a7c15L
    h ^ (h >>> 32)
  }
}

/**
 * One-word keys. If their range is not much larger than their number, ids are found by position: one random access into
 * an array of ints. Otherwise by open addressing, with key and id side by side (one cache line a probe).
 */
final class LongKeyMap extends KeyMap(1) {
  private var low = 0L
  private var direct: Array[Int] = null // ids + 1 by key - low
  private var slots = new Array[Long](64) // key, id + 1
  private var mask = 31

  /** Prepares for about `expected` keys in [`min`, `max`]; call it before the first `add`. */
  def expect(min: Long, max: Long, expected: Long): Unit = {
    val range = max - min
    if (range >= 0 && range < math.max(1024L, expected * 8) && range < (1 << 28)) {
      low = min
      direct = new Array[Int](range.toInt + 1)
      words = new Array[Long](math.min(expected, range + 1).max(16).toInt)
    } else rehash(tableSize(expected / 8)) // rows repeat keys; growing costs less than a table that misses the cache
  }

  /** The least key and the size of the range, as long as ids are found by position. */
  def range: Option[(Long, Int)] = Option(direct).map(d => (low, d.length))

  override def find(key: Array[Long]): Int = findWord(key(0))
  override def add(key: Array[Long], from: Int): Int = addWord(key(from))

  def findWord(key: Long): Int = {
    if (direct != null) {
      val at = key - low
      if (at < 0 || at >= direct.length) -1 else direct(at.toInt) - 1
    } else {
      var s = KeyMap.mix(key).toInt & mask
      while (slots(2 * s + 1) != 0 && slots(2 * s) != key) s = (s + 1) & mask
      slots(2 * s + 1).toInt - 1
    }
  }

  def addWord(key: Long): Int = {
    if (direct != null) {
      val at = key - low
      if (at >= 0 && at < direct.length) {
        val entry = direct(at.toInt)
        if (entry != 0) entry - 1
        else {
          direct(at.toInt) = size + 1
          appendWord(key)
        }
      } else {
        direct = null // the key is outside the expected range: hash from now on
        rehash(tableSize(size * 2L))
        addHashed(key)
      }
    } else addHashed(key)
  }

  private def addHashed(key: Long): Int = {
    var s = KeyMap.mix(key).toInt & mask
    while (slots(2 * s + 1) != 0 && slots(2 * s) != key) s = (s + 1) & mask
    if (slots(2 * s + 1) != 0) slots(2 * s + 1).toInt - 1
    else {
      slots(2 * s) = key
      slots(2 * s + 1) = size + 1
      val id = appendWord(key)
      if (size * 2 > mask) rehash((mask + 1) * 2)
      id
    }
  }

  private def appendWord(key: Long): Int = {
    if (size == words.length) growWords()
    words(size) = key
    size += 1
    size - 1
  }

  private def tableSize(expected: Long): Int =
    Integer.highestOneBit(math.max(32L, math.min(expected * 3, 1 << 29)).toInt)

  private def rehash(capacity: Int): Unit = {
    slots = new Array[Long](2 * capacity)
    mask = capacity - 1
    var id = 0
    while (id < size) {
      var s = KeyMap.mix(words(id)).toInt & mask
      while (slots(2 * s + 1) != 0) s = (s + 1) & mask
      slots(2 * s) = words(id)
      slots(2 * s + 1) = id + 1
      id += 1
    }
  }
}

/** Keys of several words, or of none: open addressing over ids, the words compared in `words`. */
final class TupleKeyMap(n: Int) extends KeyMap(n) {
  private var slots = new Array[Int](64) // id + 1
  private var mask = 63

  private def slotOf(key: Array[Long], from: Int): Int = {
    var h = 0L
    var j = 0
    while (j < n) {
      h = KeyMap.mix(h + key(from + j))
      j += 1
    }
    h.toInt & mask
  }

  private def isEqual(id: Int, key: Array[Long], from: Int): Boolean = {
    val at = id * n
    var j = 0
    while (j < n && words(at + j) == key(from + j)) j += 1
    j == n
  }

  override def find(key: Array[Long]): Int = {
    var s = slotOf(key, 0)
    while (slots(s) != 0 && !isEqual(slots(s) - 1, key, 0)) s = (s + 1) & mask
    slots(s) - 1
  }

  override def add(key: Array[Long], from: Int): Int = {
    var s = slotOf(key, from)
    while (slots(s) != 0 && !isEqual(slots(s) - 1, key, from)) s = (s + 1) & mask
    if (slots(s) != 0) slots(s) - 1
    else {
      val id = append(key, from)
      slots(s) = id + 1
      if (size * 2 > mask) grow()
      id
    }
  }

  private def grow(): Unit = {
    slots = new Array[Int](slots.length * 2)
    mask = slots.length - 1
    var id = 0
    while (id < size) {
      var s = slotOf(words, id * n)
      while (slots(s) != 0) s = (s + 1) & mask
      slots(s) = id + 1
      id += 1
    }
  }
}
