package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.MappedFile
import org.apache.spark.unsafe.Platform

/**
 * A value of 32 or 64 bits for each row of a static side, in an array or in a mapped file. `base` and `offset` are what
 * Spark's `Platform` takes: the array and the place of its first value, or null and an address.
 */
final class Column private (
    val base: AnyRef, val offset: Long, val length: Int, val isWide: Boolean, file: MappedFile, gang: Gang)
    extends AutoCloseable {
  val isMapped: Boolean = file != null
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

  /** Returns the values of these rows. */
  def only(rows: Array[Int]): Column = {
    val out = sameKind(rows.length)
    rows.indices.foreach(at => copy(rows(at), out, at, 1))
    out
  }

  /** Returns a column of `n` zeros of this width, mapped if this one is. */
  def sameKind(n: Int): Column = Column(n, isWide, isMapped, gang)

  override def close(): Unit = if (file != null) file.close()
}

object Column {
  def apply(ints: Array[Int]): Column = new Column(ints, Platform.INT_ARRAY_OFFSET, ints.length, false, null, null)

  /** Returns a column of zeros; one that is too long for a mapping is in an array. */
  def apply(length: Int, isWide: Boolean, isMapped: Boolean, gang: Gang): Column = {
    val bytes = length.toLong * (if (isWide) 8 else 4)
    if (isMapped && bytes > 0 && bytes <= MappedFile.MostBytes) {
      val file = new MappedFile("indexes", bytes)
      gang.closeAtEnd(file)
      new Column(null, file.address, length, isWide, file, gang)
    } else if (isWide) new Column(new Array[Long](length), Platform.LONG_ARRAY_OFFSET, length, isWide, null, null)
    else Column(new Array[Int](length))
  }
}
