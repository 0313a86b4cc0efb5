package org.apache.spark.sql.paralagg.load

import java.nio.ByteBuffer
import java.util.Arrays
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.paralagg.gang.{Codec, WordsCodec}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.unsafe.types.UTF8String

/**
 * The strings of a run by their words, one instance an executor (docs/design.md, "Data in the loop").
 *
 * Strings of the inputs come first, in order, so their words compare as they do. Strings that rules make are numbered behind
 * them as this executor meets them: here one string has one word, on another executor another one, so messages between
 * executors are translated ([[StringWords]]), and order is by bytes.
 */
final class Dictionary(val ranked: Array[UTF8String]) extends StringTable {
  private val words = new ConcurrentHashMap[UTF8String, Integer]()
  @volatile private var made = Array.emptyObjectArray.asInstanceOf[Array[AnyRef]]
  private var size = 0

  override def get(word: Int): UTF8String =
    if (word < ranked.length) ranked(word) else made(word - ranked.length).asInstanceOf[UTF8String]

  /** The word of a string that some rule made; any task may ask. */
  def word(s: UTF8String): Long = {
    val known = words.get(s)
    if (known != null) known.longValue else words.computeIfAbsent(s.copy(), number(_)).longValue
  }

  def isMade(word: Long): Boolean = word >= ranked.length && word <= Int.MaxValue

  /** Whether `a` stands before `b`. What an empty `min` or `max` holds is no string, but stands where it should. */
  def less(a: Long, b: Long): Boolean = {
    def isString(w: Long) = w >= 0 && w <= Int.MaxValue
    if ((isMade(a) && isString(b)) || (isMade(b) && isString(a))) get(a.toInt).compareTo(get(b.toInt)) < 0 else a < b
  }

  /** All of them by word. To be asked for when no rule runs any more. */
  lazy val all: Array[UTF8String] = synchronized {
    if (size == 0) ranked
    else {
      val out = Arrays.copyOf(ranked, ranked.length + size)
      System.arraycopy(made, 0, out, ranked.length, size)
      out
    }
  }

  private def number(s: UTF8String): Integer = {
    val rank = Arrays.binarySearch(ranked.asInstanceOf[Array[AnyRef]], s)
    if (rank >= 0) rank
    else synchronized {
      if (size == made.length) made = Arrays.copyOf(made, math.max(64, size * 2))
      made(size) = s
      size += 1
      ranked.length + size - 1
    }
  }
}

/** Rows of one kind within a message: their number, then `stride` words each, strings in `columns`. */
final case class WordsSection(stride: Int, columns: Array[Int])

/**
 * Messages of words between executors where rules make strings: these travel with the message, and get the words of the
 * executor that receives them.
 */
final class StringWords(sections: Array[WordsSection], strings: Dictionary) extends Codec[Array[Long]] {

  override def encode(message: Array[Long]): Array[Byte] = {
    val used = new LocalDictionary
    val words = message.clone()
    foreachMade(words)(word => strings.ranked.length + used.add(strings.get(word)))
    val made = Arrays.copyOf(used.strings, used.size)
    val plain = WordsCodec.encode(words)
    val out = ByteBuffer.allocate(4 + plain.length + Strings.bytes(made))
    out.putInt(plain.length).put(plain)
    Strings.write(made, out)
    out.array
  }

  override def decode(bytes: Array[Byte]): Array[Long] = {
    val in = ByteBuffer.wrap(bytes)
    val plain = new Array[Byte](in.getInt())
    in.get(plain)
    val words = WordsCodec.decode(plain)
    val here = Strings.read(in).map(strings.word)
    foreachMade(words)(word => here(word - strings.ranked.length))
    words
  }

  private def foreachMade(words: Array[Long])(translate: Int => Long): Unit = {
    var at = 0
    sections.foreach { section =>
      if (at < words.length) {
        val rows = words(at).toInt
        at += 1
        (0 until rows).foreach { _ =>
          section.columns.foreach { c =>
            if (strings.isMade(words(at + c))) words(at + c) = translate(words(at + c).toInt)
          }
          at += section.stride
        }
      }
    }
  }
}

object StringWords {

  /** For messages of these sections: plain words, where no rule makes strings. */
  def codec(stratum: StratumSpec, sections: => Array[WordsSection], strings: Dictionary): Codec[Array[Long]] =
    if (stratum.makesStrings) new StringWords(sections, strings) else WordsCodec
}
