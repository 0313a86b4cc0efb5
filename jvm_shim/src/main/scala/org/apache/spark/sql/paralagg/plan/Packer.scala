package org.apache.spark.sql.paralagg.plan

import java.io.ByteArrayOutputStream
import java.math.BigInteger

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Values of a type as texts with the same order, and back. A value becomes bytes that compare as it does, and no value's
 * bytes begin another's; six bits of them make a printable character.
 *
 * {{{
 *   number       its bytes, the highest first, with the sign bit flipped (of a fraction that is negative, all bits)
 *   text, bytes  the bytes, of which 0 and 1 have a 1 before them, and a 0
 *   array        a 2 before each element, a 1 in place of a null, and a 0
 *   struct       its fields likewise, without the 0
 * }}}
 */
final class Packer(dataType: DataType) extends Serializable {
  import Packer._

  def pack(value: Any): UTF8String = {
    val bytes = new ByteArrayOutputStream
    write(value, dataType, bytes)
    toText(bytes.toByteArray)
  }

  def unpack(text: UTF8String): Any = new Reader(toBytes(text.getBytes)).read(dataType)
}

private object Packer {
  private val End = 0
  private val NoValue = 1
  private val Value = 2
  private val WideBytes = 16 // 38 digits and a sign
  private val FirstChar = '0'

  private def write(value: Any, dataType: DataType, to: ByteArrayOutputStream): Unit = dataType match {
    case BooleanType => to.write(if (value.asInstanceOf[Boolean]) 1 else 0)
    case FloatType => writeFraction(value.asInstanceOf[Float], to)
    case DoubleType => writeFraction(value.asInstanceOf[Double], to)
    case StringType => writeBytes(value.asInstanceOf[UTF8String].getBytes, to)
    case BinaryType => writeBytes(value.asInstanceOf[Array[Byte]], to)
    case t: DecimalType =>
      val unscaled = value.asInstanceOf[Decimal].toJavaBigDecimal.setScale(t.scale).unscaledValue.toByteArray
      val sign = (if (unscaled(0) < 0) -1 else 0).toByte
      val wide = Array.fill(WideBytes - unscaled.length)(sign) ++ unscaled
      wide(0) = (wide(0) ^ 0x80).toByte
      to.write(wide, 0, WideBytes)
    case ArrayType(elementType, _) =>
      val array = value.asInstanceOf[ArrayData]
      (0 until array.numElements).foreach { n =>
        writeItem(if (array.isNullAt(n)) null else array.get(n, elementType), elementType, to)
      }
      to.write(End)
    case StructType(fields) =>
      val row = value.asInstanceOf[InternalRow]
      fields.indices.foreach { n =>
        writeItem(if (row.isNullAt(n)) null else row.get(n, fields(n).dataType), fields(n).dataType, to)
      }
    case _ => writeNumber(value.asInstanceOf[Number].longValue ^ Long.MinValue, to)
  }

  private def writeItem(value: Any, dataType: DataType, to: ByteArrayOutputStream): Unit =
    if (value == null) to.write(NoValue)
    else {
      to.write(Value)
      write(value, dataType, to)
    }

  /** Writes a fraction, with one zero and one NaN, which is the greatest value. */
  private def writeFraction(value: Double, to: ByteArrayOutputStream): Unit = {
    val bits = java.lang.Double.doubleToLongBits(value + 0.0)
    writeNumber(if (bits < 0) ~bits else bits ^ Long.MinValue, to)
  }

  private def writeNumber(bits: Long, to: ByteArrayOutputStream): Unit =
    (56 to 0 by -8).foreach(shift => to.write((bits >>> shift).toInt & 0xff))

  private def writeBytes(bytes: Array[Byte], to: ByteArrayOutputStream): Unit = {
    bytes.foreach { b =>
      if (b == 0 || b == 1) to.write(1)
      to.write(if (b == 0 || b == 1) b + 1 else b)
    }
    to.write(End)
  }

  private final class Reader(bytes: Array[Byte]) {
    private var at = 0

    def read(dataType: DataType): Any = dataType match {
      case BooleanType => next() != 0
      case FloatType => fraction().toFloat
      case DoubleType => fraction()
      case StringType => UTF8String.fromBytes(terminated())
      case BinaryType => terminated()
      case t: DecimalType =>
        val wide = bytes.slice(at, at + WideBytes)
        at += WideBytes
        wide(0) = (wide(0) ^ 0x80).toByte
        Decimal(new java.math.BigDecimal(new BigInteger(wide), t.scale), t.precision, t.scale)
      case ArrayType(elementType, _) =>
        new GenericArrayData(Iterator.continually(next()).takeWhile(_ != End).map(item(_, elementType)).toArray[Any])
      case StructType(fields) => new GenericInternalRow(fields.map(f => item(next(), f.dataType)))
      case ByteType => integer().toByte
      case ShortType => integer().toShort
      case IntegerType | DateType | _: YearMonthIntervalType => integer().toInt
      case _ => integer()
    }

    private def item(mark: Int, dataType: DataType): Any = if (mark == NoValue) null else read(dataType)

    private def next(): Int = {
      at += 1
      bytes(at - 1)
    }

    private def number(): Long = (0 until 8).foldLeft(0L)((bits, _) => bits << 8 | (next() & 0xff))
    private def integer(): Long = number() ^ Long.MinValue
    private def fraction(): Double = {
      val bits = number()
      java.lang.Double.longBitsToDouble(if (bits < 0) bits ^ Long.MinValue else ~bits)
    }

    private def terminated(): Array[Byte] =
      Iterator.continually(next()).takeWhile(_ != End).map(b => (if (b == 1) next() - 1 else b).toByte).toArray
  }

  /** Returns six bits of the bytes in each character. */
  private def toText(bytes: Array[Byte]): UTF8String = {
    val text = new Array[Byte]((bytes.length * 8 + 5) / 6)
    text.indices.foreach { n =>
      val (first, shift) = (n * 6 / 8, n * 6 % 8)
      val two = (bytes(first) & 0xff) << 8 | (if (first + 1 < bytes.length) bytes(first + 1) & 0xff else 0)
      text(n) = (FirstChar + (two >>> (10 - shift) & 0x3f)).toByte
    }
    UTF8String.fromBytes(text)
  }

  private def toBytes(text: Array[Byte]): Array[Byte] = {
    val bytes = new Array[Byte](text.length * 6 / 8)
    bytes.indices.foreach { n =>
      val (first, shift) = (n * 8 / 6, n * 8 % 6)
      val three = (0 until 3).foldLeft(0) { (bits, k) =>
        bits << 6 | (if (first + k < text.length) text(first + k) - FirstChar else 0)
      }
      bytes(n) = (three >>> (10 - shift)).toByte
    }
    bytes
  }
}
