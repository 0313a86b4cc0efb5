package org.apache.spark.sql.paralagg.gang

import org.apache.spark.TaskContext
import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}

/**
 * What a gang task holds, taken from Spark's memory manager so that other operators know of it, and given back when the
 * task ends. The arrays live on the heap; this is the account, asked whenever the loop has grown.
 */
final class MemoryAccount(context: TaskContext) {
  private val consumer = new MemoryAccount.Consumer(context.taskMemoryManager())
  private var held = 0L

  /** Now `bytes` are held for `what`; throws where the memory manager has no more to give. */
  def hold(bytes: Long, what: String): Unit = if (bytes > held) {
    val wanted = bytes - held
    val got = consumer.acquireMemory(wanted)
    held += got
    if (got < wanted) {
      throw new ParalaggException(
        ErrorCodes.OutOfMemory,
        s"$what needs ${bytes >> 20} MiB in one task, and Spark's memory manager has ${held >> 20} MiB for it.",
        "give executors more memory (spark.executor.memory; spark.driver.memory under local[N]) or use more, smaller tasks.")
    }
  }

  def release(): Unit = {
    consumer.freeMemory(held)
    held = 0
  }
}

object MemoryAccount {
  private final class Consumer(manager: TaskMemoryManager) extends MemoryConsumer(manager, MemoryMode.ON_HEAP) {
    override def spill(size: Long, trigger: MemoryConsumer): Long = 0L
  }
}
