package org.apache.spark.sql.paralagg.state

import java.util.BitSet

import org.apache.spark.sql.paralagg.gang.{Gang, WordsCodec}
import org.apache.spark.sql.paralagg.load.LongBuffer

/**
 * The rows from which rules may derive rows of `fell` (ids by relation) again. A scan of resolved targets finds them.
 * Fallen rows of other tasks are ghosts here. Collective to make.
 */
private[state] final class Supporters(parts: Array[RelationPart], fell: Array[Array[Int]], gang: Gang) {
  private val own = fell.map(bitsOf)

  /** The ghosts of fallen rows, and those whose ids at their owners are not known, by relation. */
  private val ghosts: Array[BitSet] = {
    val fallen =
      parts.map(p => gang.allgather(fell(p.index).map(_.toLong), WordsCodec).map(ids => bitsOf(ids.map(_.toInt))))
    parts.map { p =>
      val found = new BitSet
      (0 until p.ghosts.size).foreach { g =>
        val id = p.ghostRemote(g)
        if (id < 0 || fallen(p.index)(p.ghostOwner(g)).get(id)) found.set(g)
      }
      found
    }
  }

  /** Returns the groups of an index with a row whose target, in relation `head`, fell. */
  def of(index: StaticIndex, targets: Column, head: Int): Array[Int] = {
    val (mine, others) = (own(head), ghosts(head))
    val found = new LongBuffer
    var group = 0
    while (group < index.groups) {
      var row = index.offsets(group)
      val end = index.offsets(group + 1)
      while (row < end) {
        val target = targets.int(row)
        if (if (target >= 0) mine.get(target) else others.get(~target)) {
          found.add(group)
          row = end
        } else row += 1
      }
      group += 1
    }
    found.trimmed.map(_.toInt)
  }

  private def bitsOf(ids: Array[Int]): BitSet = {
    val bits = new BitSet
    ids.foreach(bits.set)
    bits
  }
}
