package org.apache.spark.sql.paralagg.driver

import org.apache.spark.sql.paralagg.load.{StringTable, WordColumn}
import org.apache.spark.sql.paralagg.loop.BitmapBlock
import org.apache.spark.sql.types.{DataType, Decimal}
import org.apache.spark.sql.vectorized.{ColumnarArray, ColumnarMap, ColumnVector}
import org.apache.spark.unsafe.types.UTF8String

/** A column of words as a vector for Spark's operators, without a copy. `source` is called when a value is read. */
final class WordVector(t: DataType, source: () => WordColumn, nulls: java.util.BitSet, strings: StringTable)
    extends ColumnVector(t) {
  private var read: WordColumn = _
  private def words: WordColumn = {
    if (read == null) read = source()
    read
  }

  override def close(): Unit = ()
  override def hasNull: Boolean = nulls != null
  override def numNulls: Int = if (nulls == null) 0 else nulls.cardinality
  override def isNullAt(row: Int): Boolean = nulls != null && nulls.get(row)
  override def getBoolean(row: Int): Boolean = words(row) != 0
  override def getByte(row: Int): Byte = words(row).toByte
  override def getShort(row: Int): Short = words(row).toShort
  override def getInt(row: Int): Int = words(row).toInt
  override def getLong(row: Int): Long = words(row)
  override def getFloat(row: Int): Float = java.lang.Float.intBitsToFloat(words(row).toInt)
  override def getDouble(row: Int): Double = java.lang.Double.longBitsToDouble(words(row))
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null else Decimal.createUnsafe(words(row), precision, scale)
  override def getUTF8String(row: Int): UTF8String = if (isNullAt(row)) null else strings.get(words(row).toInt)
  override def getArray(row: Int): ColumnarArray = throw new UnsupportedOperationException
  override def getMap(row: Int): ColumnarMap = throw new UnsupportedOperationException
  override def getBinary(row: Int): Array[Byte] = throw new UnsupportedOperationException
  override def getChild(ordinal: Int): ColumnVector = throw new UnsupportedOperationException
}

/** The pairs of a block of bitmaps, some thousands at a time. */
private[driver] final class BitmapRows(b: BitmapBlock) extends Iterator[BitmapPairs] {
  private var at = 0 // position in the bits
  private var isUnread = b.width == 0
  skip()

  private def skip(): Unit = while (at < b.bits.length && b.bits(at) == 0) at += 1

  override def hasNext: Boolean = isUnread || at < b.bits.length

  override def next(): BitmapPairs = {
    val from = at
    var n = if (isUnread) b.xs.length else 0
    isUnread = false
    while (at < b.bits.length && n < BitmapRows.BatchRows) {
      n += java.lang.Long.bitCount(b.bits(at))
      at += 1
    }
    skip()
    new BitmapPairs(b, from, n)
  }
}

private object BitmapRows {
  private val BatchRows = 1 << 14
}

/** `size` pairs of a block, from a word of its bits on. They are written out when they are read: a count reads none. */
private[driver] final class BitmapPairs(b: BitmapBlock, from: Int, val size: Int) {
  lazy val xs: Array[Long] = if (b.width == 0) b.xs else pairs._1
  lazy val ys: Array[Long] = if (b.width == 0) b.ys else pairs._2

  private lazy val pairs: (Array[Long], Array[Long]) = {
    val x = new Array[Long](size)
    val y = new Array[Long](size)
    var at = from
    var n = 0
    while (n < size) {
      val vertex = b.ys(at / b.width)
      val base = 64 * (at % b.width)
      var unread = b.bits(at)
      while (unread != 0) {
        x(n) = b.xs(base + java.lang.Long.numberOfTrailingZeros(unread))
        y(n) = vertex
        unread &= unread - 1
        n += 1
      }
      at += 1
    }
    (x, y)
  }
}
