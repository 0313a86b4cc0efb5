package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.load.Block

/** The edges of a bitmap evaluation, over dense ids of the vertices (CSR). One instance an executor, read-only. */
final class BitmapEdges(val vertices: KeyMap, val offsets: Array[Int], val targets: Array[Int]) {
  def bytes: Long = (offsets.length + targets.length) * 4L + vertices.words.length * 24L
}

object BitmapEdges {

  /** Builds the edges from blocks of (from, to); the edges of several rules form one set. */
  def build(blocks: Array[Block]): BitmapEdges = {
    val map = new LongKeyMap
    StaticIndex.expect(map, blocks.iterator.flatMap(b => Iterator((b, 0), (b, 1))))
    val (offsets, targets) = place(map, blocks, 1)
    new BitmapEdges(map, offsets, targets)
  }

  /** Returns the offsets by vertex, and the vertices in column `to`, of rows by column 0; adds vertices to `map`. */
  private[state] def place(map: LongKeyMap, blocks: Array[Block], to: Int): (Array[Int], Array[Int]) = {
    val n = blocks.map(_.rows).sum
    val froms = new Array[Int](n)
    val tos = new Array[Int](n)
    var at = 0
    blocks.foreach { b =>
      val (f, t) = (b.column(0), b.column(to))
      var i = 0
      while (i < b.rows) {
        if (!b.isNull(to, i)) {
          froms(at) = map.addWord(f(i))
          tos(at) = map.addWord(t(i))
          at += 1
        }
        i += 1
      }
    }
    val placement = StaticIndex.place(froms.take(at), map.size, null)
    (placement.offsets, placement.order(tos.take(at)))
  }
}
