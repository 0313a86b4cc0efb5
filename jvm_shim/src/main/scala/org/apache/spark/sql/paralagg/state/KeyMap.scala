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

  /**
   * Writes the ids of `n` keys to `ids`, and adds those that are new. A key begins at `from`, the next one `stride`
   * words later. In a large map it is several times as fast as `add` for each.
   */
  def addAll(keys: Array[Long], from: Int, stride: Int, n: Int, ids: Array[Int]): Unit = {
    var i = 0
    while (i < n) {
      ids(i) = add(keys, from + i * stride)
      i += 1
    }
  }

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

/**
 * Keys of several words, or of none: open addressing. A slot has the hash of a key and its id + 1, so that the words of
 * another key in the way are hardly ever read.
 */
final class TupleKeyMap(n: Int) extends KeyMap(n) {
  private var slots = new Array[Long](64)
  private var mask = 63

  private def hashOf(key: Array[Long], from: Int): Int = {
    var h = 0L
    var j = 0
    while (j < n) {
      h = KeyMap.mix(h + key(from + j))
      j += 1
    }
    h.toInt
  }

  @inline private def hashIn(slot: Long): Int = (slot >>> 32).toInt
  @inline private def idIn(slot: Long): Int = slot.toInt - 1

  private def isEqual(id: Int, key: Array[Long], from: Int): Boolean = {
    val at = id * n
    var j = 0
    while (j < n && words(at + j) == key(from + j)) j += 1
    j == n
  }

  /** Returns the position of the slot with the key, or of the empty slot for it. */
  private def place(key: Array[Long], from: Int, hash: Int): Int = {
    var s = hash & mask
    while (slots(s) != 0 && (hashIn(slots(s)) != hash || !isEqual(idIn(slots(s)), key, from))) s = (s + 1) & mask
    s
  }

  override def find(key: Array[Long]): Int = idIn(slots(place(key, 0, hashOf(key, 0))))

  override def add(key: Array[Long], from: Int): Int = {
    val hash = hashOf(key, from)
    val s = place(key, from, hash)
    if (slots(s) != 0) idIn(slots(s))
    else {
      val id = append(key, from)
      slots(s) = hash.toLong << 32 | (id + 1)
      if (size * 2 > mask) grow()
      id
    }
  }

  /** Finds a slot with the hash of each key, then compares the words: loops whose steps do not wait for one another. */
  override def addAll(keys: Array[Long], from: Int, stride: Int, n: Int, ids: Array[Int]): Unit = {
    var i = 0
    while (i < n) {
      val hash = hashOf(keys, from + i * stride)
      var s = hash & mask
      while (slots(s) != 0 && hashIn(slots(s)) != hash) s = (s + 1) & mask
      ids(i) = idIn(slots(s))
      i += 1
    }
    i = 0
    while (i < n) {
      val at = from + i * stride
      if (ids(i) < 0 || !isEqual(ids(i), keys, at)) ids(i) = add(keys, at)
      i += 1
    }
  }

  /** Doubles the slots. Read in their order, they are written in two orders, without the words of the keys. */
  private def grow(): Unit = {
    val old = slots
    slots = new Array[Long](old.length * 2)
    mask = slots.length - 1
    var i = 0
    while (i < old.length) {
      if (old(i) != 0) {
        var s = hashIn(old(i)) & mask
        while (slots(s) != 0) s = (s + 1) & mask
        slots(s) = old(i)
      }
      i += 1
    }
  }
}
