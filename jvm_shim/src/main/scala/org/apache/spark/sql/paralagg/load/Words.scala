package org.apache.spark.sql.paralagg.load

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException, SparkMinor}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** The encoding of a type's values in 64-bit words, and their hash: Catalyst's, so the reported partitioning holds. */
sealed abstract class WordType extends Serializable {

  /** Returns the word of a value in a row; interns a string in `strings`. */
  def read(row: SpecializedGetters, ordinal: Int, strings: LocalDictionary): Long

  /** The most bytes of a word in a block: 4 if all fit, since [[WordColumn]] then needs no more. */
  def bytes: Int = 8

  /** Returns Spark's Murmur3Hash of one column, chained through `seed`. */
  def hash(word: Long, seed: Int, strings: StringTable): Int = Murmur3_x86_32.hashLong(word, seed)

  /** Return Java source that decodes the word `w` to a value, and that encodes a value. */
  def decode(w: String): String
  def encode(value: String): String
}

/** The word of a value that Catalyst hashes as an int. */
sealed abstract class IntHashed extends WordType {
  override def bytes: Int = 4
  override def hash(word: Long, seed: Int, strings: StringTable): Int = Murmur3_x86_32.hashInt(word.toInt, seed)
}

object Words {
  val Seed = 42

  def of(dataType: DataType): WordType = dataType match {
    case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType => LongWord
    case IntegerType | DateType | _: YearMonthIntervalType => IntWord("int")
    case ShortType => IntWord("short")
    case ByteType => IntWord("byte")
    case BooleanType => BooleanWord
    case DoubleType => DoubleWord
    case FloatType => FloatWord
    case d: DecimalType if d.precision <= Decimal.MAX_LONG_DIGITS => DecimalWord(d.precision, d.scale)
    case s: StringType if SparkMinor.isBinary(s) => StringWord
    case other =>
      throw new ParalaggException(
        ErrorCodes.TypeUnsupported,
        s"the gang engine cannot hold ${other.simpleString} in a word.",
        "use backend='dataframe' for this relation.")
  }
}

case object LongWord extends WordType {
  override def read(row: SpecializedGetters, i: Int, strings: LocalDictionary): Long = row.getLong(i)
  override def decode(w: String): String = w
  override def encode(value: String): String = value
}

case class IntWord(javaType: String) extends IntHashed {
  override def read(row: SpecializedGetters, i: Int, strings: LocalDictionary): Long = javaType match {
    case "int" => row.getInt(i)
    case "short" => row.getShort(i)
    case _ => row.getByte(i)
  }
  override def decode(w: String): String = s"(($javaType) $w)"
  override def encode(value: String): String = s"((long) $value)"
}

case object BooleanWord extends IntHashed {
  override def read(row: SpecializedGetters, i: Int, strings: LocalDictionary): Long = if (row.getBoolean(i)) 1 else 0
  override def decode(w: String): String = s"($w != 0L)"
  override def encode(value: String): String = s"($value ? 1L : 0L)"
}

/** Doubles with one NaN and one zero, as in Spark's grouping. */
case object DoubleWord extends WordType {
  def word(value: Double): Long = java.lang.Double.doubleToLongBits(if (value == 0.0d) 0.0d else value)
  override def read(row: SpecializedGetters, i: Int, strings: LocalDictionary): Long = word(row.getDouble(i))
  override def decode(w: String): String = s"Double.longBitsToDouble($w)"
  override def encode(value: String): String = s"DoubleWord.word($value)"
}

case object FloatWord extends IntHashed {
  def word(value: Float): Long = java.lang.Float.floatToIntBits(if (value == 0.0f) 0.0f else value)
  override def read(row: SpecializedGetters, i: Int, strings: LocalDictionary): Long = word(row.getFloat(i))
  override def decode(w: String): String = s"Float.intBitsToFloat((int) $w)"
  override def encode(value: String): String = s"FloatWord.word($value)"
}

case class DecimalWord(precision: Int, scale: Int) extends WordType {
  override def read(row: SpecializedGetters, i: Int, strings: LocalDictionary): Long =
    row.getDecimal(i, precision, scale).toUnscaledLong
  override def decode(w: String): String = s"Decimal.createUnsafe($w, $precision, $scale)"
  override def encode(value: String): String = s"$value.toUnscaledLong()"
}

/** The word of a string is its place in the run's [[Dictionary]]. */
case object StringWord extends WordType {
  override def bytes: Int = 4
  override def read(row: SpecializedGetters, i: Int, strings: LocalDictionary): Long = strings.add(row.getUTF8String(i))
  override def hash(w: Long, seed: Int, strings: StringTable): Int =
    if (seed == Words.Seed) strings.hash(w.toInt) else Texts.hash(strings.get(w.toInt), seed)
  override def decode(w: String): String = s"ra_strings.get((int) $w)"
  override def encode(value: String): String = s"ra_strings.word($value)"
}
