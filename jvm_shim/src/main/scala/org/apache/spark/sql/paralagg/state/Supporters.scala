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

  /** Returns the rows of an index whose target, in relation `head`, fell. */
  def rows(targets: Column, head: Int): Array[Int] = {
    val (mine, others) = (own(head), ghosts(head))
    val found = new LongBuffer
    var row = 0
    while (row < targets.length) {
      val target = targets.int(row)
      if (if (target >= 0) mine.get(target) else others.get(~target)) found.add(row)
      row += 1
    }
    found.trimmed.map(_.toInt)
  }

  /** Returns the groups of these rows of an index. */
  def groups(index: StaticIndex, rows: Array[Int]): Array[Int] = {
    val found = new LongBuffer
    var (at, group) = (0, 0)
    while (at < rows.length) {
      while (index.offsets(group + 1) <= rows(at)) group += 1
      found.add(group)
      while (at < rows.length && rows(at) < index.offsets(group + 1)) at += 1
    }
    found.trimmed.map(_.toInt)
  }

  private def bitsOf(ids: Array[Int]): BitSet = {
    val bits = new BitSet
    ids.foreach(bits.set)
    bits
  }
}
