package org.apache.spark.sql.paralagg.load

import java.nio.ByteBuffer
import java.nio.channels.FileChannel

import org.apache.spark.storage.StorageUtils
import org.apache.spark.util.UninterruptibleThread
import sun.nio.ch.DirectBuffer

/**
 * A file of zeros in one of Spark's local directories, mapped to memory at `address`.
 *
 * A read behind [[close]] would end the JVM, so only methods that alone use a file close it early. The session of the
 * gang closes the others when all of its tasks in this executor have ended.
 */
private[paralagg] final class MappedFile(content: String, bytes: Long) extends AutoCloseable {
  private var mapped: ByteBuffer = map()
  val address: Long = mapped.asInstanceOf[DirectBuffer].address

  /** The zeros are written first: if the disk is full, a write through the mapping ends the JVM. */
  private def map(): ByteBuffer = {
    val file = new LocalFile(content)
    try file.attempt("write") {
        val page = ByteBuffer.allocate(1 << 20)
        var at = 0L
        while (at < bytes) {
          page.clear().limit(math.min(page.capacity.toLong, bytes - at).toInt)
          at += file.channel.write(page, at)
        }
        MappedFile.map(file.channel, bytes)
      }
    finally file.channel.close() // the mapping keeps the file
  }

  override def close(): Unit = synchronized {
    if (mapped != null) StorageUtils.dispose(mapped)
    mapped = null
  }
}

private[paralagg] object MappedFile {

  /** The most bytes of one mapping in Java 17. */
  val MostBytes: Long = Int.MaxValue

  /**
   * Maps a file. An interrupt (Spark cancels queries with one) has to wait: `FileChannel.map` would throw after it has
   * mapped the file, and nothing could ever unmap it.
   */
  def map(channel: FileChannel, bytes: Long): ByteBuffer = {
    def mapped: ByteBuffer = channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes)
    Thread.currentThread match {
      case task: UninterruptibleThread => task.runUninterruptibly(mapped)
      case _ => mapped
    }
  }
}
