package org.apache.spark.sql.paralagg.exec

/** Base and initial rows: keys to ids, values to flat rows for a combiner. */
object BaseRows {

  def fillKey(key: Array[Long], b: Block, columns: Array[Int], row: Int, masked: Boolean): Unit = {
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

  def ids(p: RelationPart, b: Block): Array[Int] = {
    val key = new Array[Long](p.shape.keyWords)
    val columns = p.spec.keys.indices.toArray
    Array.tabulate(b.rows) { i =>
      fillKey(key, b, columns, i, p.shape.hasNullKeys)
      p.keys.add(key)
    }
  }

  /** Values of all rows, flat, in the form that combiners read; a base row has no parent. */
  def values(p: RelationPart, b: Block): (Array[Long], Int) = {
    val k = p.spec.keys.length
    val n = p.spec.dependents.length
    val masked = p.shape.dependents.contains(true)
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
      if (masked) out(i * stride + n) = mask
      if (p.isTraced) out(i * stride + stride - 1) = -1L
      i += 1
    }
    (out, stride)
  }
}
