package org.apache.spark.sql.paralagg.gang

import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}

import org.apache.spark.storage.BlockId
import org.apache.spark.util.Utils

/** The run and the attempt of its stage: a retried stage must not read data of the attempt before. */
case class GangKey(run: Long, attempt: Int)

/** The failure or cancellation of a peer: Spark retries the stage. The peer itself reports the cause. */
class GangAborted(reason: String) extends RuntimeException(reason)

/** An error of a peer that a retry would repeat: that task returns it as its result, and the others stop. */
class GangStopped(reason: String) extends RuntimeException(reason)

object GangEnd {
  private val Stopped = "stopped: "

  /** Marks a reason, which is sent as text, as one that a retry would repeat. */
  def stopped(reason: String): String = Stopped + reason
  def isStopped(reason: String): Boolean = reason.startsWith(Stopped)
  def exception(reason: String): RuntimeException =
    if (isStopped(reason)) new GangStopped(reason) else new GangAborted(reason)
}

object Votes {

  /** Adds the votes `more` to `all`; of the last `maxima` it keeps the greater one instead. */
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
 * The tasks of one gang in this executor: a barrier that adds up votes, and the mailboxes between the tasks.
 *
 * The last local task to arrive communicates with other executors (`remote`), if there are any. Within one executor
 * nothing leaves the JVM, and a meeting costs a few microseconds.
 */
final class GangSession(val key: GangKey, localTasks: Int, tasks: Int) {
  import GangSession._

  private var arrived = 0
  private var sums: Array[Double] = Array.emptyDoubleArray
  @volatile private var result: Array[Double] = Array.emptyDoubleArray
  @volatile private var generation = 0L
  @volatile private var abortReason: String = null
  private var departed = 0

  /** Mailboxes by parity of the meeting, sender, receiver; then values for all receivers, by parity and sender. */
  private val boxes = Array.fill(2, tasks, tasks)(null: AnyRef)
  private val gatherBoxes = Array.fill(2, tasks)(null: AnyRef)
  private val shared = new ConcurrentHashMap[Long, AnyRef]()
  private val resources = new ConcurrentLinkedQueue[AutoCloseable]()

  /** Blocks stored for other executors; only the last task to arrive at a meeting changes them. */
  @volatile var published: Seq[BlockId] = Nil

  def parity: Int = (generation & 1).toInt
  def box(parity: Int): Array[Array[AnyRef]] = boxes(parity)
  def gathered(parity: Int): Array[AnyRef] = gatherBoxes(parity)
  def meetings: Long = generation

  /** Returns the value that the first caller of this meeting makes. */
  def once[T <: AnyRef](make: () => T): T =
    shared.computeIfAbsent(generation, _ => make()).asInstanceOf[T]

  def forget(meeting: Long): Unit = shared.remove(meeting)

  /** Waits for all tasks and returns the sums of their votes (`Votes`); calls `check` every few milliseconds. */
  def allreduce(
      votes: Array[Double], maxima: Int, remote: Array[Double] => Array[Double], check: () => Unit): Array[Double] = {
    fail()
    val (isLast, meeting) = synchronized {
      if (arrived == 0) sums = votes.clone()
      else Votes.add(sums, votes, maxima)
      arrived += 1
      (arrived == localTasks, generation)
    }
    if (isLast) {
      val total = remote(sums)
      synchronized {
        arrived = 0
        result = total
        generation = meeting + 1
        notifyAll()
      }
      total
    } else {
      var spins = 0
      while (generation == meeting && spins < Spins) {
        Thread.onSpinWait()
        spins += 1
      }
      while (generation == meeting) {
        check()
        val reason = abortReason // read before the generation: a peer may finish this meeting and then end the run
        if (reason != null && generation == meeting) throw GangEnd.exception(reason)
        synchronized(if (generation == meeting && abortReason == null) wait(WaitMillis))
      }
      result
    }
  }

  def abort(reason: String): Unit = synchronized {
    if (abortReason == null) abortReason = reason
    notifyAll()
  }

  def fail(): Unit = if (abortReason != null) throw GangEnd.exception(abortReason)

  def isStopped: Boolean = abortReason != null && GangEnd.isStopped(abortReason)

  /** Closes `resource` when the last task leaves. */
  def closeAtEnd(resource: AutoCloseable): Unit = resources.add(resource)

  /** Counts a task that has ended; the last one removes the session and gets true. */
  def leave(): Boolean = {
    val isLast = synchronized {
      departed += 1
      departed == localTasks
    }
    if (isLast) {
      live.remove(key, this)
      resources.forEach(r => Utils.tryLogNonFatalError(r.close()))
    }
    isLast
  }
}

object GangSession {
  private val Spins = 2000
  private val WaitMillis = 20L
  private val live = new ConcurrentHashMap[GangKey, GangSession]()

  def of(key: GangKey, localTasks: Int, tasks: Int): GangSession =
    live.computeIfAbsent(key, k => new GangSession(k, localTasks, tasks))

  /** Returns the number of sessions in this JVM: 0 after all runs have ended (tests check it). */
  def liveCount: Int = live.size
}
