package org.apache.spark.sql.paralagg.load

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, IOException}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.{ClosedChannelException, FileChannel}
import java.nio.file.{Path, StandardOpenOption}

import scala.collection.mutable

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.memory.{MemoryConsumer, MemoryMode}
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}

/**
 * The full blocks of a task: in memory as long as Spark's memory manager grants it, then in a file. Blocks that another
 * task of the executor has got stay in the store of the task that read them.
 */
final class BlockStore(context: TaskContext) extends MemoryConsumer(context.taskMemoryManager(), MemoryMode.ON_HEAP) {
  private val inMemory = mutable.ArrayDeque.empty[Block]
  private var file: SpillFile = null

  /** The bytes that went to the file. */
  @volatile var spilledBytes = 0L

  def add(block: Block): Unit = {
    val bytes = block.bytes
    val granted = acquireMemory(bytes) // may call `spill`
    if (granted == bytes) inMemory += block
    else {
      freeMemory(granted)
      store(block)
    }
  }

  /** Moves blocks to the file, oldest first. Spark calls it in this task when it needs memory. */
  override def spill(size: Long, trigger: MemoryConsumer): Long = {
    var stored = 0L
    while (stored < size && inMemory.nonEmpty) {
      val block = inMemory.removeHead()
      stored += block.bytes
      store(block)
    }
    val before = getUsed
    shrink()
    before - getUsed
  }

  /** Returns memory of blocks that were freed. */
  def shrink(): Unit = {
    inMemory.filterInPlace(_.bytes > 0)
    freeMemory(math.max(0, getUsed - inMemory.iterator.map(_.bytes).sum))
  }

  def close(): Unit = {
    inMemory.clear()
    freeMemory(getUsed)
    if (file != null) file.close()
  }

  private def store(block: Block): Unit = {
    if (file == null) file = new SpillFile
    spilledBytes += block.bytes
    block.store(file)
  }
}

/**
 * A file of words in one of Spark's local directories, encrypted if Spark encrypts its own. It has no name once it is
 * open (Linux, macOS), so nothing is left, however the process ends.
 */
final class SpillFile {
  private val env = SparkEnv.get
  private val path: Path = env.blockManager.diskBlockManager.createTempLocalBlock()._2.toPath
  private val channel = named("open") {
    FileChannel.open(
      path, StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE,
      StandardOpenOption.DELETE_ON_CLOSE)
  }
  private var end = 0L

  /** Appends the first `n` words. */
  def write(words: Array[Long], n: Int): StoredWords = {
    val at = end
    val bytes = put(words, n, at)
    end += bytes
    new StoredWords(this, at, bytes, n)
  }

  private[load] def put(words: Array[Long], n: Int, at: Long): Int = {
    val plain = ByteBuffer.allocate(8 * n).order(ByteOrder.nativeOrder)
    plain.asLongBuffer().put(words, 0, n)
    val out = encrypted(plain)
    val bytes = out.remaining
    named("write")(while (out.hasRemaining) channel.write(out, at + bytes - out.remaining))
    bytes
  }

  private[load] def get(at: Long, bytes: Int, n: Int): Array[Long] = {
    val in = ByteBuffer.allocate(bytes)
    named("read")(while (in.hasRemaining && channel.read(in, at + in.position()) >= 0) {})
    in.flip()
    val words = new Array[Long](n)
    decrypted(in, n).order(ByteOrder.nativeOrder).asLongBuffer().get(words)
    words
  }

  def close(): Unit = channel.close()

  private def encrypted(plain: ByteBuffer): ByteBuffer =
    if (!env.serializerManager.encryptionEnabled) plain
    else {
      val bytes = new ByteArrayOutputStream(plain.capacity + 64)
      val out = env.serializerManager.wrapForEncryption(bytes)
      out.write(plain.array)
      out.close()
      ByteBuffer.wrap(bytes.toByteArray)
    }

  private def decrypted(stored: ByteBuffer, n: Int): ByteBuffer =
    if (!env.serializerManager.encryptionEnabled) stored
    else {
      val in = env.serializerManager.wrapForEncryption(new ByteArrayInputStream(stored.array))
      try ByteBuffer.wrap(in.readNBytes(8 * n))
      finally in.close()
    }

  private def named[T](what: String)(work: => T): T =
    try work
    catch {
      case e: ClosedChannelException => throw e // the task that has written it ended, or was interrupted
      case e: IOException =>
        throw new ParalaggException(
          ErrorCodes.DiskFull,
          s"cannot $what $path, which holds rows that memory does not: ${e.getMessage}.",
          "free space on it, set spark.local.dir to a folder on another disk, or give executors more memory.")
    }
}

/** Words of one column in a file. */
final class StoredWords(file: SpillFile, at: Long, bytes: Int, n: Int) {
  def read(): Array[Long] = file.get(at, bytes, n)

  def rewrite(words: Array[Long]): Unit = file.put(words, n, at)
}
