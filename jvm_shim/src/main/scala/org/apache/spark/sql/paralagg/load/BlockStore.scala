package org.apache.spark.sql.paralagg.load

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}
import java.nio.{ByteBuffer, ByteOrder}
import java.util.ArrayDeque

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.memory.{MemoryConsumer, MemoryMode}

/**
 * The full blocks of a task: in memory as long as Spark's memory manager grants it, then in a file. Blocks that another
 * task of the executor has got stay in the store of the task that read them.
 */
final class BlockStore(context: TaskContext) extends MemoryConsumer(context.taskMemoryManager(), MemoryMode.ON_HEAP) {
  private val inMemory = new ArrayDeque[Block]
  private var file: SpillFile = null

  /** The bytes that went to the file. */
  @volatile var spilledBytes = 0L

  def add(block: Block): Unit = {
    val bytes = block.bytes
    val granted = acquireMemory(bytes) // may call `spill`
    if (granted == bytes) inMemory.addLast(block)
    else {
      freeMemory(granted)
      store(block)
    }
  }

  /** Moves blocks to the file, oldest first. Spark calls it in this task when it needs memory. */
  override def spill(size: Long, trigger: MemoryConsumer): Long = {
    var stored = 0L
    while (stored < size && !inMemory.isEmpty) {
      val block = inMemory.removeFirst()
      stored += block.bytes
      store(block)
    }
    val before = getUsed
    shrink()
    before - getUsed
  }

  /** Returns memory of blocks that were freed. */
  def shrink(): Unit = {
    inMemory.removeIf(_.bytes == 0)
    freeMemory(math.max(0, getUsed - inMemory.stream.mapToLong(_.bytes).sum))
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

/** A file of words, encrypted if Spark encrypts its own. */
final class SpillFile {
  private val env = SparkEnv.get
  private val file = new LocalFile("rows")
  import file.{attempt, channel}
  private var end = 0L

  /** Writes a column to the end, or over one of the same size. */
  def write(words: WordColumn, at: Long = end): StoredWords = {
    val plain = ByteBuffer.allocate(words.bytes.toInt).order(ByteOrder.nativeOrder)
    words.write(plain)
    val out = encrypted(plain.flip())
    val bytes = out.remaining
    attempt("write")(while (out.hasRemaining) channel.write(out, at + bytes - out.remaining))
    end = math.max(end, at + bytes)
    new StoredWords(this, at, bytes, words.size, words.least, words.most)
  }

  /** Returns the first `plain` bytes of what was written at `at`. */
  private[load] def get(at: Long, bytes: Int, plain: Int): ByteBuffer = {
    val in = ByteBuffer.allocate(bytes)
    attempt("read")(while (in.hasRemaining && channel.read(in, at + in.position()) >= 0) {})
    decrypted(in.flip(), plain).order(ByteOrder.nativeOrder)
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

  private def decrypted(stored: ByteBuffer, plain: Int): ByteBuffer =
    if (!env.serializerManager.encryptionEnabled) stored
    else {
      val in = env.serializerManager.wrapForEncryption(new ByteArrayInputStream(stored.array))
      try ByteBuffer.wrap(in.readNBytes(plain))
      finally in.close()
    }
}

/** A column of `n` words in a file. */
final class StoredWords(file: SpillFile, at: Long, bytes: Int, n: Int, val least: Long, val most: Long) {
  def read(): WordColumn =
    WordColumn.read(file.get(at, bytes, WordColumn.bytes(n, least, most).toInt), n, least, most)

  /** Replaces the column by another one of the same size. */
  def rewrite(words: WordColumn): StoredWords = file.write(words, at)
}
