package org.apache.spark.sql.paralagg.state

/**
 * Rows that rules derived for keys that they compute, gathered to be looked up together. A row is its key, its values as
 * `combiner` reads them, and the task that owns it if that is another one.
 *
 * A lookup in a large relation waits for main memory. One after the other, the processor waits for each; in a loop over
 * many, for several at a time (docs/architecture.md, "Words, ids, ghosts").
 *
 * @param areGhosts other tasks own the rows
 */
final class DerivedRows(part: RelationPart, combiner: Combiner, areGhosts: Boolean) {
  private val stride = math.max(1, part.shape.keyWords + part.valueWords + (if (areGhosts) 1 else 0))
  private val ids = new Array[Int](math.max(16, DerivedRows.Words / stride))
  val words: Array[Long] = new Array(ids.length * stride)

  /** The end of the rows in `words`. Generated code writes a row there, then calls `add`. */
  var end: Int = 0

  /** Adds the row at `end`; tests whether there is room for another one. */
  def add(): Boolean = {
    end += stride
    end < words.length
  }

  /** Aggregates all rows into the relation. It may replace its arrays. */
  def flush(): Unit = if (end > 0) {
    val n = end / stride
    end = 0 // an overflow ends the run, and rows after it do not matter
    if (areGhosts) part.addGhosts(words, stride, n, ids) else part.addKeys(words, 0, stride, n, ids)
    val into = if (areGhosts) part.ghost else part.pending
    combiner.rows(into, ids, words, part.shape.keyWords, stride, n)
  }
}

object DerivedRows {
  private val Words = 4096 // fit in the first-level cache
}
