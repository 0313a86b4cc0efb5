package org.apache.spark.sql.paralagg.loop

import java.util.Arrays

import org.apache.spark.sql.paralagg.gang.{Gang, WordsCodec}
import org.apache.spark.sql.paralagg.load.LongBuffer
import org.apache.spark.sql.paralagg.state.{Accumulator, Hubs, LoopState, RowAddress}

/** The rows of hubs, which every task has a copy of: rules over their edges read it. For loops in place. */
final class HubRows(hubs: Hubs, loop: LoopState, runner: Runner, gang: Gang) {
  private val part = loop.part(0)
  private val copy = loop.relationIndex(hubs.spec.copy).part
  private val ids = ownIds
  private val values = Array.fill(ids.length)(new LongBuffer)

  /** The values of each hub as they were sent; null before. */
  private val sent = new Array[Array[Long]](ids.length)

  /** Returns the number of this task's hubs that changed since they were sent. */
  def waiting: Int = ids.indices.count(hasChanged)

  /** Puts hubs that changed on the dirty list, for a checkpoint: they may be no hubs in the attempt that reads it. */
  def release(): Unit = ids.indices.filter(hasChanged).foreach(h => part.state.enqueue(ids(h)))

  /** Sends hubs that changed to all tasks, which apply the rules to them. Collective. */
  def run(): Unit = {
    val message = new LongBuffer
    ids.indices.filter(hasChanged).foreach { h =>
      sent(h) = values(h).trimmed
      (0 until part.shape.keyWords).foreach(c => message.add(part.keys.word(ids(h), c)))
      sent(h).foreach(message.add)
      if (part.isTraced) message.array(message.size - 1) = RowAddress.of(0, loop.me, ids(h))
    }
    val words = if (message.size == 0) null else message.trimmed
    val (in, _) = gang.exchange(Array.fill(gang.tasks)(words), WordsCodec, Array.emptyDoubleArray)
    copy.currentSize = 0
    in.foreach(w => if (w != null) receive(w))
    runner.applyCopies()
    copy.currentSize = 0
    loop.sentBytes += message.size * 8L * (gang.tasks - 1)
  }

  /** Tests whether a hub has a row with other values than those sent; a row settled before the run needs not be sent. */
  private def hasChanged(h: Int): Boolean = {
    val flags = part.state.flags(ids(h))
    (flags & (Accumulator.Present | Accumulator.Settled)) == Accumulator.Present && {
      values(h).size = 0
      part.appendValues(values(h), part.state, ids(h))
      sent(h) == null || !Arrays.equals(sent(h), values(h).trimmed)
    }
  }

  /** Returns the ids of this task's hubs; those without one never get a row. */
  private def ownIds: Array[Int] = {
    val key = new Array[Long](part.shape.keyWords)
    (0 until hubs.all.size).map { h =>
      (0 until hubs.all.arity).foreach(c => key(c) = hubs.all.word(h, c))
      part.keys.find(key)
    }.filter(_ >= 0).toArray
  }

  private def receive(words: Array[Long]): Unit = {
    val stride = part.shape.keyWords + part.valueWords
    (0 until words.length by stride).foreach(CopyExchange.take(copy, words, _, Accumulator.Present))
  }
}
