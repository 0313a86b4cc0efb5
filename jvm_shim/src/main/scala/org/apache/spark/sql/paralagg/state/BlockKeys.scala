package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.load.{Block, WordColumn}

/** The keys of rows in blocks: base rows, rows of static indexes, targets. */
private[paralagg] object BlockKeys {

  /**
   * Fills `key` from `columns` of a row, followed by the mask of its nulls if keys have one (`hasMask`). `words` are
   * those of the columns.
   */
  def fill(
      key: Array[Long], b: Block, columns: Array[Int], words: Array[WordColumn], row: Int, hasMask: Boolean): Unit = {
    var mask = 0L
    var c = 0
    while (c < columns.length) {
      if (b.isNull(columns(c), row)) {
        key(c) = 0
        mask |= 1L << c
      } else key(c) = words(c)(row)
      c += 1
    }
    if (hasMask) key(columns.length) = mask
  }

  /** Adds the key of each row, which is its first `keyColumns`, to `keys`; writes the rows' ids to `ids`. */
  def intern(blocks: Array[Block], keyColumns: Int, keys: KeyMap, hasMask: Boolean, ids: Column): Unit = {
    val columns = Array.range(0, keyColumns)
    var at = 0
    val scratch = new Array[Long](keys.arity) // the mask stays 0 if these rows have no nulls
    blocks.foreach { b =>
      keys match {
        case map: LongKeyMap =>
          val a = b.column(0)
          var i = 0
          while (i < b.rows) {
            ids.set(at, map.addWord(a(i)))
            at += 1
            i += 1
          }
        case _ =>
          val in = columns.map(b.column)
          var i = 0
          while (i < b.rows) {
            fill(scratch, b, columns, in, i, hasMask)
            ids.set(at, keys.add(scratch))
            at += 1
            i += 1
          }
      }
    }
  }
}
