package org.apache.spark.sql.paralagg.state

import java.util.Arrays

import org.apache.spark.sql.paralagg.gang.{Gang, WordsCodec}
import org.apache.spark.sql.paralagg.load.Block
import org.apache.spark.sql.paralagg.plan.BitRowsSpec

/**
 * The vertices of rows of bits, numbered alike in all tasks: in the order of words. For each flow with an index, the
 * vertices that it finds (CSR). One instance an executor, read-only.
 */
final class BitRowsEdges(
    val vertices: LongKeyMap, val offsets: Array[Array[Int]], val targets: Array[Array[Int]]) {
  def bytes: Long = (offsets.iterator ++ targets).map(_.length * 4L).sum + vertices.words.length * 24L
}

object BitRowsEdges {

  /** Builds the edges. `bases` are the task's base rows, `static` the rows of an index. Collective. */
  def build(
      form: BitRowsSpec, bases: Array[Array[Block]], static: Int => Array[Block], gang: Gang): BitRowsEdges = {
    val indexes = form.flows.map(_.index).filter(_ >= 0)
    val own = distinct(bases.flatten.flatMap(columns(_)))
    val all = gang.allgather(own, WordsCodec)
    gang.once {
      val words = distinct(all ++ indexes.distinct.flatMap(static(_)).flatMap(columns(_)))
      val vertices = new LongKeyMap
      if (words.nonEmpty) vertices.expect(words.head, words.last, words.length)
      words.foreach(vertices.addWord)
      val found = form.flows.map { flow =>
        if (flow.index < 0) (Array.emptyIntArray, Array.emptyIntArray)
        else BitmapEdges.place(vertices, static(flow.index), 1 + flow.found)
      }
      new BitRowsEdges(vertices, found.map(_._1), found.map(_._2))
    }
  }

  private def columns(b: Block): Array[Array[Long]] = b.allColumns.map(_.toArray)

  private def distinct(parts: Array[Array[Long]]): Array[Long] = {
    val words = Array.concat(parts.toIndexedSeq: _*)
    Arrays.sort(words)
    var n = 0
    words.indices.foreach { i =>
      if (i == 0 || words(i) != words(i - 1)) {
        words(n) = words(i)
        n += 1
      }
    }
    Arrays.copyOf(words, n)
  }
}
