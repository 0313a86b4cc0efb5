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

  /** The bytes of static sides that this task has put into mapped files. */
  var mappedBytes = 0L

  /** Raises the reservation to `bytes`, for `what`; throws if the memory manager does not grant them. */
  def hold(bytes: Long, what: String): Unit = {
    val until = System.nanoTime() + WaitNanos
    while (!makeRoom(bytes) && System.nanoTime() < until) Thread.sleep(50)
    if (consumer.getUsed < bytes) {
      throw new ParalaggException(
        ErrorCodes.OutOfMemory,
        s"$what needs ${bytes >> 20} MiB in one task, and Spark's memory manager has ${consumer.getUsed >> 20} MiB for it.",
        "give executors more memory (spark.executor.memory; spark.driver.memory under local[N]) or use more, smaller tasks." +
          (if (mayMap) ""
           else " With spark.io.encryption.enabled, indexes stay in memory: mapped files are not encrypted."))
    }
  }

  /**
   * Raises the reservation towards `bytes`, as far as the memory manager grants them; others of the task spill. Returns
   * whether all are granted.
   */
  def makeRoom(bytes: Long): Boolean = {
    if (bytes > consumer.getUsed) consumer.acquireMemory(bytes - consumer.getUsed)
    consumer.getUsed >= bytes
  }

  def release(): Unit = consumer.freeMemory(consumer.getUsed)
}

object MemoryAccount {

  /** Tests whether static sides may be mapped from files, which cannot be encrypted. */
  def mayMap: Boolean = !SparkEnv.get.serializerManager.encryptionEnabled

  /** How long to wait for memory: tasks that run beside a gang have their share until they end. */
  private val WaitNanos = 2L * 1000 * 1000 * 1000
}
