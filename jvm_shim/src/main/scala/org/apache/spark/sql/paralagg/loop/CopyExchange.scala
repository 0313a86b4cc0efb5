package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.{LongBuffer, Owner, StringWords, WordsSection}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.{Accumulator, LoopState, RelationIndex, RelationPart}

/**
 * The exchange for copies of relations on the tasks whose rules probe them (non-linear recursion, products). After each
 * round it sends the changed rows, which replace the old ones (docs/design.md, "Copies of relations").
 */
final class CopyExchange(stratum: StratumSpec, loop: LoopState, gang: Gang) {
  private val copies = loop.indexes.values.filter(_.spec.copy).toArray.sortBy(_.spec.id)
  private val codec = StringWords.codec(stratum, sections, loop.strings)

  def run(): Unit = if (copies.nonEmpty) {
    val out = Array.fill(gang.tasks)(new LongBuffer)
    copies.foreach { index =>
      val from = out.map(_.size)
      out.foreach(_.add(0))
      send(index, loop.part(index.spec.relation), out)
      out.indices.foreach(t => out(t).array(from(t)) = (out(t).size - from(t) - 1) / rowWords(index.part))
    }
    loop.sentBytes += out.map(_.size * 8L).sum
    val (in, _) = gang.exchange(out.map(_.trimmed), codec, Array.emptyDoubleArray)
    val at = new Array[Int](gang.tasks)
    copies.foreach { index =>
      // The previous delta; an iterated relation is sent as a whole in each round, so its rows are cleared, too.
      index.part.setFlags(clear = if (stratum.isIterated) -1 else Accumulator.InDelta)
      index.part.currentSize = 0
      in.indices.foreach(t => at(t) = receive(index, in(t), at(t)))
      index.linkCurrent()
    }
  }

  private def send(index: RelationIndex, part: RelationPart, out: Array[LongBuffer]): Unit = {
    val shape = part.shape
    val owner = new Owner(part.spec, index.spec.keys, shape.hasNullKeys, gang.tasks, loop.strings)
    val row = new LongBuffer
    var i = 0
    while (i < part.currentSize) {
      val id = part.current(i)
      row.size = 0
      (0 until shape.keyWords).foreach(c => row.add(part.keys.word(id, c)))
      part.appendValues(row, part.driverValues, id)
      if (row.size == 0) row.add(0) // a relation without columns: the row has no words of its own
      if (index.spec.everywhere) out.foreach(append(_, row))
      else append(out(owner.taskOf(row.array)), row)
      i += 1
    }
  }

  private def sections: Array[WordsSection] = copies.map { c =>
    val p = c.part
    WordsSection(rowWords(p), p.stringKeys ++ p.stringValues.map(p.shape.keyWords + _))
  }

  private def rowWords(part: RelationPart): Int = math.max(1, part.shape.keyWords + part.valueWords)

  private def append(out: LongBuffer, row: LongBuffer): Unit = {
    out.reserve(row.size)
    System.arraycopy(row.array, 0, out.array, out.size, row.size)
    out.size += row.size
  }

  private def receive(index: RelationIndex, words: Array[Long], from: Int): Int = {
    val n = words(from).toInt
    var at = from + 1
    (0 until n).foreach { _ =>
      CopyExchange.take(index.part, words, at, Accumulator.Present | Accumulator.InDelta)
      at += rowWords(index.part)
    }
    at
  }
}

object CopyExchange {

  /** Replaces a row of a copy by the one whose key and values begin at `at`, and appends it to the current ones. */
  def take(copy: RelationPart, words: Array[Long], at: Int, flags: Int): Unit = {
    val shape = copy.shape
    val id = copy.keys.add(words, at)
    if (id >= copy.state.capacity) copy.grow()
    if (copy.currentSize == copy.current.length) {
      copy.current = java.util.Arrays.copyOf(copy.current, math.max(16, copy.currentSize * 2))
    }
    val from = at + shape.keyWords
    val mask = if (shape.dependents.contains(true)) words(from + shape.dependents.length) else 0L
    shape.dependents.indices.foreach { j =>
      copy.state.columns(j)(id) = words(from + j)
      if (copy.state.valid(j) != null) copy.state.valid(j)(id) = if ((mask >> j & 1) == 0) 1 else 0
    }
    if (copy.isTraced) copy.state.parents(id) = words(from + copy.valueWords - 1)
    copy.state.flags(id) = flags.toByte
    copy.current(copy.currentSize) = id
    copy.currentSize += 1
  }
}
