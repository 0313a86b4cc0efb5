package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.load.Block

/** Base and initial rows: ids of their keys, and their values as flat rows for a combiner. */
object BaseRows {

  def ids(p: RelationPart, b: Block): Array[Int] =
    BlockKeys.intern(Array(b), p.spec.keys.length, p.keys, p.shape.hasNullKeys)

  /** Returns the values of all rows as combiners read them, and the words of a row; a base row has no parent. */
  def values(p: RelationPart, b: Block): (Array[Long], Int) = {
    val k = p.spec.keys.length
    val n = p.spec.dependents.length
    val hasMask = p.shape.dependents.contains(true)
    val stride = p.valueWords
    val out = new Array[Long](b.rows * stride)
    var i = 0
    while (i < b.rows) {
      var mask = 0L
      var j = 0
      while (j < n) {
        if (b.isNull(k + j, i)) mask |= 1L << j
        else out(i * stride + j) = b.words(k + j).array(i)
        j += 1
      }
      if (hasMask) out(i * stride + n) = mask
      if (p.isTraced) out(i * stride + stride - 1) = -1L
      i += 1
    }
    (out, stride)
  }
}
