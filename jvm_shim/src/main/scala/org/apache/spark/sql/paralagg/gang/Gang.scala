package org.apache.spark.sql.paralagg.gang

import scala.reflect.ClassTag

/** One task's view of its gang. Every call is collective: all tasks make the same calls in the same order. */
trait Gang {
  def part: Int
  def tasks: Int

  /** The tasks of this executor, which share what it has once. */
  def localTasks: Int

  /** The rows that a task may apply between two exchanges. */
  def rowsPerExchange: Int

  /** Throws if the task was cancelled, or a peer failed. Call it at least every few milliseconds. */
  def check(): Unit

  /** Returns the sum of each vote over all tasks; of the last `maxima` votes the maximum. */
  def allreduce(votes: Array[Double], maxima: Int = 0): Array[Double]

  /** Waits until all tasks have come here. */
  final def meet(): Unit = allreduce(Array.emptyDoubleArray)

  /** Sends `out(t)` to task t (null: nothing). Returns the payload from each task, and the sums of the votes. */
  def exchange[T <: AnyRef: ClassTag](
      out: Array[T], codec: Codec[T], votes: Array[Double], maxima: Int = 0): (Array[T], Array[Double])

  /** Returns the values of all tasks, one instance an executor. */
  def allgather[T <: AnyRef: ClassTag](value: T, codec: Codec[T]): Array[T]

  /** Evaluates `make` in one task of each executor and returns its value in all of them. */
  def once[T <: AnyRef](make: => T): T

  /** Returns the values of the tasks of this executor, by task; null for others. */
  def gather[T <: AnyRef: ClassTag](value: T): Array[T]

  /** Tests whether all tasks share one JVM. */
  def isOneExecutor: Boolean

  /** Closes `resource` when all tasks of this executor have ended. */
  def closeAtEnd(resource: AutoCloseable): Unit

  /** Tells the driver the run's counts, now and then. It never waits. */
  def progress(isLast: Boolean)(counts: => RunCounts): Unit
}

object Gang {
  private val loading = new ThreadLocal[Gang]

  /** Evaluates `load`, in which inputs may find the gang that reads them (`own`). */
  def within[T](gang: Gang)(load: => T): T = {
    loading.set(gang)
    try load
    finally loading.remove()
  }

  /** Returns the gang whose task loads its inputs in this thread. */
  def own: Gang = loading.get()
}

/** The gang of a task that works alone on a part of what `outer` does, or on all of it (`isWhole`). */
final class SingleTask(outer: Gang, isWhole: Boolean = false) extends Gang {
  override def part: Int = 0
  override def tasks: Int = 1
  override def localTasks: Int = if (isWhole) 1 else outer.localTasks
  override def rowsPerExchange: Int = outer.rowsPerExchange
  override def check(): Unit = outer.check()
  override def allreduce(votes: Array[Double], maxima: Int): Array[Double] = votes
  override def exchange[T <: AnyRef: ClassTag](
      out: Array[T], codec: Codec[T], votes: Array[Double], maxima: Int): (Array[T], Array[Double]) = (out, votes)
  override def allgather[T <: AnyRef: ClassTag](value: T, codec: Codec[T]): Array[T] = Array(value)
  override def once[T <: AnyRef](make: => T): T = make
  override def gather[T <: AnyRef: ClassTag](value: T): Array[T] = Array(value)
  override def isOneExecutor: Boolean = true
  override def closeAtEnd(resource: AutoCloseable): Unit = outer.closeAtEnd(resource)
  override def progress(isLast: Boolean)(counts: => RunCounts): Unit = if (isWhole) outer.progress(isLast)(counts)
}
