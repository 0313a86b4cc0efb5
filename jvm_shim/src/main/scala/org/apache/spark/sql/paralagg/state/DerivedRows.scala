package org.apache.spark.sql.paralagg.state

/** Aggregates `count` rows into the ids; a row is `stride` words from `at` on (values, null mask, parent). */
trait CombineRows {
  def rows(into: Accumulator, ids: Array[Int], rows: Array[Long], at: Int, stride: Int, count: Int): Unit
}

/**
 * Rows that rules derived for keys that they compute, gathered to be looked up together. A row is its key, then its
 * values as `combine` reads them.
 *
 * A lookup in a large relation waits for main memory. One after the other, the processor waits for each; in a loop over
 * many, for several at a time (docs/architecture.md, "Words, ids, ghosts").
 *
 * @param areGhosts other tasks own the rows
 */
final class DerivedRows(part: RelationPart, combine: CombineRows, areGhosts: Boolean) {
  val stride: Int = part.shape.keyWords + part.valueWords
  private val most = DerivedRows.most(stride)
  val words: Array[Long] = new Array(most * stride)
  private val owners = if (areGhosts) new Array[Int](most) else null
  private val ids = new Array[Int](most)

  /** The end of the rows in `words`. Generated code writes a row there, then calls `add`. */
  var end: Int = 0

  /** Adds the row at `end`; tests whether there is room for another one. */
  def add(): Boolean = {
    end += stride
    end < words.length
  }

  /** As `add`, for a row that task `owner` owns. */
  def add(owner: Int): Boolean = {
    owners(end / stride) = owner
    add()
  }

  /** Aggregates all rows into the relation. It may replace its arrays. */
  def flush(): Unit = if (end > 0) {
    val n = end / stride
    end = 0 // an overflow ends the run, and rows after it do not matter
    val (keys, into) = if (areGhosts) (part.ghosts, part.ghost) else (part.keys, part.pending)
    keys.addAll(words, 0, stride, n, ids)
    if (keys.size > into.capacity) if (areGhosts) part.growGhosts() else part.grow()
    if (areGhosts) {
      var i = 0
      while (i < n) {
        part.ghostOwner(ids(i)) = owners(i)
        i += 1
      }
    }
    combine.rows(into, ids, words, part.shape.keyWords, stride, n)
  }
}

object DerivedRows {
  private val Words = 4096 // fit in the first-level cache

  private def most(stride: Int): Int = math.max(16, Words / math.max(1, stride))
}
