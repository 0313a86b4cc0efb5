package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.load.Block

/** Keys of the rows of blocks: of base rows, of static indexes, of targets. */
private[paralagg] object BlockKeys {

  /** The key of a row from `columns` of its block, with the mask of its nulls behind if keys have one (`masked`). */
  def fill(key: Array[Long], b: Block, columns: Array[Int], row: Int, masked: Boolean): Unit = {
    var mask = 0L
    var c = 0
    while (c < columns.length) {
      if (b.isNull(columns(c), row)) {
        key(c) = 0
        mask |= 1L << c
      } else key(c) = b.words(columns(c)).array(row)
      c += 1
    }
    if (masked) key(columns.length) = mask
  }

  /** Adds the key of each row, which is its first `keyColumns`, to `keys`; returns the rows' ids. */
  def intern(blocks: Array[Block], keyColumns: Int, keys: KeyMap, masked: Boolean): Array[Int] = {
    val ids = new Array[Int](blocks.map(_.rows).sum)
    val columns = Array.range(0, keyColumns)
    var at = 0
    val scratch = new Array[Long](keys.arity) // without nulls here, the mask that others have stays 0
    blocks.foreach { b =>
      keys match {
        case map: LongKeyMap =>
          val a = b.words(0).array
          var i = 0
          while (i < b.rows) {
            ids(at) = map.addWord(a(i))
            at += 1
            i += 1
          }
        case _ =>
          var i = 0
          while (i < b.rows) {
            fill(scratch, b, columns, i, masked)
            ids(at) = keys.add(scratch)
            at += 1
            i += 1
          }
      }
    }
    ids
  }
}
