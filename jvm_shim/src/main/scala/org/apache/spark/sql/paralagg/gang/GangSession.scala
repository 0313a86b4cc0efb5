package org.apache.spark.sql.paralagg.gang

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.storage.BlockId

/** Which run and which attempt of its stage: a retried stage must never meet its predecessor's data. */
case class GangKey(run: Long, attempt: Int)

/** A peer failed or was cancelled: Spark retries the stage. The cause is told by whoever failed. */
class GangAborted(reason: String) extends RuntimeException(reason)

/** A peer met an error that a retry would meet again and gives it to the reader as its result: the others just stop. */
class GangStopped(reason: String) extends RuntimeException(reason)

object GangEnd {
  private val Stopped = "stopped: "

  /** Reasons travel as text; this one says that there is nothing to retry. */
  def stopped(reason: String): String = Stopped + reason
  def exception(reason: String): RuntimeException =
    if (reason.startsWith(Stopped)) new GangStopped(reason) else new GangAborted(reason)
}

object Votes {

  /** Puts the votes of one more into `all`: they are added up, but of the last `maxima` the greatest counts. */
  def add(all: Array[Double], more: Array[Double], maxima: Int): Unit = {
    val summed = all.length - maxima
    var i = 0
    while (i < all.length) {
      all(i) = if (i < summed) all(i) + more(i) else math.max(all(i), more(i))
      i += 1
    }
  }
}

/**
 * The tasks of one gang that live in this executor: a barrier that adds up votes, and the mailboxes between them.
 *
 * The last of the local tasks to arrive does the talking to other executors (`remote`), if there are any; within one
 * executor nothing leaves the JVM and a meeting costs a few microseconds.
 */
final class GangSession(val key: GangKey, localTasks: Int, tasks: Int) {
  import GangSession._

  private var arrived = 0
  private var sums: Array[Double] = Array.emptyDoubleArray
  @volatile private var result: Array[Double] = Array.emptyDoubleArray
  @volatile private var generation = 0L
  @volatile private var aborted: String = null
  private var leaving = 0

  /** Mailboxes by parity of the meeting, sender, receiver; and what a sender has for everyone. */
  private val boxes = Array.fill(2, tasks, tasks)(null: AnyRef)
  private val forAll = Array.fill(2, tasks)(null: AnyRef)
  private val shared = new ConcurrentHashMap[Long, AnyRef]()

  /** Blocks that lie here for other executors; touched by the one task of this executor that talks to them. */
  @volatile var published: Seq[BlockId] = Nil

  def parity: Int = (generation & 1).toInt
  def box(parity: Int): Array[Array[AnyRef]] = boxes(parity)
  def everyone(parity: Int): Array[AnyRef] = forAll(parity)
  def meetings: Long = generation

  /** The value that the first caller of this meeting makes; the others get the same one. */
  def once[T <: AnyRef](make: () => T): T =
    shared.computeIfAbsent(generation, _ => make()).asInstanceOf[T]

  def forget(meeting: Long): Unit = shared.remove(meeting)

  /** Waits until all have come; the sums of what they voted (`Votes`). `check` is asked every few milliseconds. */
  def meet(
      votes: Array[Double], maxima: Int, remote: Array[Double] => Array[Double], check: () => Unit): Array[Double] = {
    fail()
    val (last, now) = synchronized {
      if (arrived == 0) sums = votes.clone()
      else Votes.add(sums, votes, maxima)
      arrived += 1
      (arrived == localTasks, generation)
    }
    if (last) {
      val total = remote(sums)
      synchronized {
        arrived = 0
        result = total
        generation = now + 1
        notifyAll()
      }
      total
    } else {
      var spins = 0
      while (generation == now && spins < Spins) {
        Thread.onSpinWait()
        spins += 1
      }
      while (generation == now) {
        check()
        val reason = aborted // read before the generation: a peer may be through with this meeting and then end the run
        if (reason != null && generation == now) throw GangEnd.exception(reason)
        synchronized(if (generation == now && aborted == null) wait(WaitMillis))
      }
      result
    }
  }

  def abort(reason: String): Unit = synchronized {
    if (aborted == null) aborted = reason
    notifyAll()
  }

  def fail(): Unit = if (aborted != null) throw GangEnd.exception(aborted)

  /** A task is through; the last one takes the session away, and is told that it was the last. */
  def leave(): Boolean = {
    val last = synchronized {
      leaving += 1
      leaving == localTasks
    }
    if (last) live.remove(key, this)
    last
  }
}

object GangSession {
  private val Spins = 2000
  private val WaitMillis = 20L
  private val live = new ConcurrentHashMap[GangKey, GangSession]()

  def of(key: GangKey, localTasks: Int, tasks: Int): GangSession =
    live.computeIfAbsent(key, k => new GangSession(k, localTasks, tasks))

  /** Sessions in this JVM: none once every run has ended (a test holds it). */
  def liveCount: Int = live.size
}
