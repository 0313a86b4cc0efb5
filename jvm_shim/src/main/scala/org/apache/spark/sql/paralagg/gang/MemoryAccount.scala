package org.apache.spark.sql.paralagg.gang

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.memory.{MemoryConsumer, MemoryMode}
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}

/**
 * The memory of a gang task in Spark's memory manager, so that other operators can account for it. The arrays
 * themselves are on the heap: the loop reserves their bytes here when they grow, and releases them when the task ends.
 *
 * Create it before the tasks of a gang first meet. It holds a byte from then on, and the memory manager lets each task
 * that holds memory have its share. A task without memory waits for some instead, and may do so for ever: those that
 * have it may wait for that task at a meeting.
 */
final class MemoryAccount(context: TaskContext) {
  import MemoryAccount._

  private val consumer = new MemoryConsumer(context.taskMemoryManager(), MemoryMode.ON_HEAP) {
    override def spill(size: Long, trigger: MemoryConsumer): Long = 0L
  }
  consumer.acquireMemory(1)

  /** The bytes of static sides and strings that this task has put into mapped files. */
  var mappedBytes = 0L

  /** The bytes of the task's strings, in addition to those that calls name. */
  private var strings = 0L

  /** Sets the bytes of the task's strings. Returns whether the memory manager grants them. */
  def holdStrings(bytes: Long): Boolean = {
    val isMore = bytes > strings
    strings = bytes
    if (isMore) makeRoom(0) else consumer.getUsed >= strings
  }

  /** Raises the reservation to `bytes`, for `what`; throws if the memory manager does not grant them. */
  def hold(bytes: Long, what: String): Unit = {
    val until = System.nanoTime() + WaitNanos
    while (!makeRoom(bytes) && System.nanoTime() < until) Thread.sleep(50)
    if (consumer.getUsed < bytes + strings) {
      throw new ParalaggException(
        ErrorCodes.OutOfMemory,
        s"a task needs ${bytes >> 20} MiB for $what, and Spark's memory manager has ${consumer.getUsed >> 20} MiB for it.",
        "give executors more memory (spark.executor.memory; spark.driver.memory under local[N]) or use more, smaller tasks." +
          (if (mayMap) ""
           else " With spark.io.encryption.enabled, indexes stay in memory: mapped files are not encrypted."))
    }
  }

  /**
   * Raises the reservation towards `bytes` and the strings, as far as the memory manager grants them; others of the task spill. Returns
   * whether all are granted.
   */
  def makeRoom(bytes: Long): Boolean = {
    val needed = bytes + strings
    if (needed > consumer.getUsed) consumer.acquireMemory(needed - consumer.getUsed)
    consumer.getUsed >= needed
  }

  def release(): Unit = consumer.freeMemory(consumer.getUsed)
}

object MemoryAccount {

  /** Tests whether static sides may be mapped from files, which cannot be encrypted. */
  def mayMap: Boolean = !SparkEnv.get.serializerManager.encryptionEnabled

  /** How long to wait for memory: tasks that run beside a gang have their share until they end. */
  private val WaitNanos = 2L * 1000 * 1000 * 1000
}
