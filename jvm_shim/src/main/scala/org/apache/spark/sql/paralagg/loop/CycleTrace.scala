package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.gang.{Gang, WordsCodec}
import org.apache.spark.sql.paralagg.load.{LongBuffer, Strings}
import org.apache.spark.sql.paralagg.state.{LongKeyMap, LoopState, RowAddress}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Finds the cycle that a run climbs without end. Each change of a traced run notes the row that it came from; where values
 * improve for ever, these parents form a cycle (as in Bellman and Ford's algorithm), and its keys are what a person wants to see.
 *
 * A row is named by relation, task and id in one word.
 */
final class CycleTrace(loop: LoopState, gang: Gang) {
  import CycleTrace._

  /** The keys on a cycle, in its order, or nothing. Collective: all tasks get the same answer. */
  def find(): Seq[String] = {
    val pairs = new LongBuffer
    loop.parts.foreach { p =>
      (0 until p.keys.size).foreach { id =>
        if (p.state.parents(id) >= 0) {
          pairs.add(RowAddress.of(p.index, loop.me, id))
          pairs.add(p.state.parents(id))
        }
      }
    }
    val out = new Array[Array[Long]](loop.tasks)
    out(0) = pairs.trimmed
    val (in, _) = gang.exchange(out, WordsCodec, Array.emptyDoubleArray)
    val found = if (loop.me == 0) cycle(in) else Array.emptyLongArray
    val nodes = gang.gather(found, WordsCodec).head
    val named = nodes.zipWithIndex.collect {
      case (n, at) if taskOf(n) == loop.me =>
        UTF8String.fromString(s"$at ${KeyText.of(loop.part(relationOf(n)), idOf(n), loop.strings)}")
    }
    gang.gather(named, Strings).flatten.map(_.toString.split(" ", 2)).sortBy(_(0).toInt).map(_(1)).toSeq
  }

  private def cycle(parts: Array[Array[Long]]): Array[Long] = {
    val ids = new LongKeyMap
    val parent = new LongBuffer
    parts.filter(_ != null).foreach(pairs => (0 until pairs.length by 2).foreach(i => ids.addWord(pairs(i))))
    (0 until ids.size).foreach(_ => parent.add(-1))
    parts.filter(_ != null).foreach { pairs =>
      (0 until pairs.length by 2).foreach(i => parent.array(ids.findWord(pairs(i))) = ids.findWord(pairs(i + 1)))
    }
    val walk = new Array[Int](ids.size) // the walk that first came by
    var answer = Array.emptyLongArray
    var start = 0
    while (start < ids.size && answer.isEmpty) {
      var at = start
      while (at >= 0 && walk(at) == 0) {
        walk(at) = start + 1
        at = parent.array(at).toInt
      }
      if (at >= 0 && walk(at) == start + 1) {
        val around = Iterator.iterate(at)(i => parent.array(i).toInt).drop(1).takeWhile(_ != at).toSeq
        answer = (at +: around).reverse.map(ids.words(_)).toArray // parents point backwards
      }
      start += 1
    }
    answer
  }
}

object CycleTrace {
  private def relationOf(node: Long): Int = (node >>> 48).toInt
  private def taskOf(node: Long): Int = (node >>> 32 & 0xffff).toInt
  private def idOf(node: Long): Int = node.toInt
}
