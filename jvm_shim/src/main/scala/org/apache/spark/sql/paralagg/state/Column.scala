package org.apache.spark.sql.paralagg.state

import java.nio.ByteBuffer
import java.nio.channels.FileChannel

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.LocalFile
import org.apache.spark.storage.StorageUtils
import org.apache.spark.unsafe.Platform
import sun.nio.ch.DirectBuffer

/**
 * A value of 32 or 64 bits for each row of a static side, in an array or in a mapped file. `base` and `offset` are what
 * Spark's `Platform` takes: the array and the place of its first value, or null and an address.
 *
 * A read behind [[close]] would end the JVM, so only columns that one method uses are closed early. The session of the
 * gang closes the others when all of its tasks in this executor have ended.
 */
final class Column private (
    val base: AnyRef, val offset: Long, val length: Int, val isWide: Boolean, private var mapped: ByteBuffer,
    gang: Gang)
    extends AutoCloseable {
  val isMapped: Boolean = mapped != null
  def bytes: Long = length.toLong * (if (isWide) 8 else 4)

  def int(row: Int): Int = Platform.getInt(base, offset + 4L * row)
  def long(row: Int): Long = Platform.getLong(base, offset + 8L * row)
  def set(row: Int, value: Int): Unit = Platform.putInt(base, offset + 4L * row, value)
  def set(row: Int, value: Long): Unit = Platform.putLong(base, offset + 8L * row, value)

  /** Returns the array of a column of ints that is not mapped. */
  def ints: Array[Int] = base.asInstanceOf[Array[Int]]

  /** Copies `n` rows to a column of the same width. */
  def copy(from: Int, to: Column, at: Int, n: Int): Unit = {
    val width = if (isWide) 8L else 4L
    Platform.copyMemory(base, offset + width * from, to.base, to.offset + width * at, width * n)
  }

  /** Returns a column of `n` zeros of this width, mapped if this one is. */
  def sameKind(n: Int): Column = Column(n, isWide, isMapped, gang)

  override def close(): Unit = synchronized {
    if (mapped != null) StorageUtils.dispose(mapped)
    mapped = null
  }
}

object Column {
  def apply(ints: Array[Int]): Column = new Column(ints, Platform.INT_ARRAY_OFFSET, ints.length, false, null, null)

  /** The most bytes of one mapping in Java 17; a static side with a longer column stays in arrays. */
  val MostMapped: Long = Int.MaxValue

  /** Returns a column of zeros. */
  def apply(length: Int, isWide: Boolean, isMapped: Boolean, gang: Gang): Column = {
    val bytes = length.toLong * (if (isWide) 8 else 4)
    if (isMapped && bytes > 0 && bytes <= MostMapped) {
      val buffer = zeros(bytes)
      val address = buffer.asInstanceOf[DirectBuffer].address
      val column = new Column(null, address, length, isWide, buffer, gang)
      gang.closeAtEnd(column)
      column
    } else if (isWide) new Column(new Array[Long](length), Platform.LONG_ARRAY_OFFSET, length, isWide, null, null)
    else Column(new Array[Int](length))
  }

  /** Maps a file of `bytes` zeros. They are written first: if the disk is full, a write through the map ends the JVM. */
  private def zeros(bytes: Long): ByteBuffer = {
    val file = new LocalFile("indexes")
    try file.attempt("write") {
        val page = ByteBuffer.allocate(1 << 20)
        var at = 0L
        while (at < bytes) {
          page.clear().limit(math.min(page.capacity.toLong, bytes - at).toInt)
          at += file.channel.write(page, at)
        }
        file.channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes)
      }
    finally file.channel.close() // the mapping keeps the file
  }
}
