package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.{LongBuffer, StringWords, WordsSection}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.{Accumulator, Combiner, LoopState, RelationPart}

/**
 * The exchange of derived rows: it sends rows to the tasks that own their keys, and aggregates received rows. A row is
 * (id at the owner, values) or, if the id is not known, (key, values). A message has for each relation the number and
 * the rows of the first kind, then of the second.
 */
final class DeltaExchange(stratum: StratumSpec, loop: LoopState, combiners: Array[Combiner], gang: Gang) {
  private val parts = loop.parts
  private val byId = Array.fill(gang.tasks)(new LongBuffer)
  private val byKey = Array.fill(gang.tasks)(new LongBuffer)
  private val codec = StringWords.codec(stratum, sections, loop.strings)

  /** The number of rows that the last exchange sent. */
  var sent = 0

  /** Exchanges the rows and returns the sums of the votes, cast after this task's rows are encoded. */
  def run(votes: => Array[Double], maxima: Int): Array[Double] = {
    val (in, sums) = send(votes, maxima)
    receive(in)
    sums
  }

  /** Sends the rows. Returns what tasks have sent to this one, and the votes' sums; of the last `maxima` the maximum. */
  def send(votes: => Array[Double], maxima: Int): (Array[Array[Long]], Array[Double]) =
    if (gang.tasks == 1) (Array.empty, gang.allreduce(votes, maxima))
    else {
      sent = parts.map(_.ghost.dirtySize).sum
      val out = encode()
      gang.exchange(out, codec, votes, maxima)
    }

  /** Aggregates what tasks have sent. */
  def receive(in: Array[Array[Long]]): Unit = in.foreach(words => if (words != null) receiveFrom(words))

  private def sections: Array[WordsSection] = parts.flatMap { p =>
    val keys = p.shape.keyWords
    Array(
      WordsSection(1 + p.valueWords, p.stringValues.map(1 + _)),
      WordsSection(keys + p.valueWords, p.stringKeys ++ p.stringValues.map(keys + _)))
  }

  private def encode(): Array[Array[Long]] = {
    val out = Array.fill(gang.tasks)(null: LongBuffer)
    parts.foreach { p =>
      if (p.ghost.dirtySize > 0 || out.exists(_ != null)) {
        collect(p)
        var t = 0
        while (t < gang.tasks) {
          if (byId(t).size + byKey(t).size > 0 && out(t) == null) {
            out(t) = new LongBuffer(byId(t).size + byKey(t).size + 2 * parts.length)
            (0 until p.index).foreach { _ =>
              out(t).add(0)
              out(t).add(0)
            }
          }
          if (out(t) != null) {
            append(out(t), byId(t), 1 + p.valueWords)
            append(out(t), byKey(t), (p.shape.keyWords + p.valueWords))
          }
          t += 1
        }
      }
    }
    out.foreach(b => if (b != null) loop.sentBytes += b.size * 8L)
    out.map(b => if (b == null) null else b.trimmed)
  }

  private def append(out: LongBuffer, rows: LongBuffer, stride: Int): Unit = {
    out.add(if (stride == 0) 0 else rows.size / stride)
    out.reserve(rows.size)
    System.arraycopy(rows.array, 0, out.array, out.size, rows.size)
    out.size += rows.size
    rows.size = 0
  }

  private def collect(p: RelationPart): Unit = {
    val g = p.ghost
    var i = 0
    while (i < g.dirtySize) {
      val id = g.dirty(i)
      val owner = p.ghostOwner(id)
      val remote = p.ghostRemote(id)
      val out = if (remote >= 0) byId(owner) else byKey(owner)
      if (remote >= 0) out.add(remote)
      else {
        var c = 0
        while (c < p.shape.keyWords) {
          out.add(p.ghosts.word(id, c))
          c += 1
        }
      }
      p.appendValues(out, g, id)
      i += 1
    }
    // Under a lattice the best value sent stays, so that no value is sent that is not better.
    if (stratum.isLattice) {
      g.setFlags(g.dirty, g.dirtySize, clear = Accumulator.Queued)
      g.dirtySize = 0
    } else g.clearDirty()
  }

  private def receiveFrom(words: Array[Long]): Unit = {
    var at = 0
    parts.foreach { p =>
      if (at < words.length) {
        val values = p.valueWords
        val row = p.shape.keyWords + values
        val idRows = words(at).toInt
        val ids = new Array[Int](idRows)
        var i = 0
        while (i < idRows) {
          ids(i) = words(at + 1 + i * (1 + values)).toInt
          i += 1
        }
        combiners(p.index).rows(p.pending, ids, words, at + 2, 1 + values, idRows)
        at += 1 + idRows * (1 + values)
        val keyRows = words(at).toInt
        at += 1
        val idsOfKeys = new Array[Int](keyRows)
        p.addKeys(words, at, row, keyRows, idsOfKeys)
        combiners(p.index).rows(p.pending, idsOfKeys, words, at + p.shape.keyWords, row, keyRows)
        at += keyRows * row
      }
    }
  }
}
