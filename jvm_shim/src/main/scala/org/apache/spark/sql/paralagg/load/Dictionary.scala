package org.apache.spark.sql.paralagg.load

import java.nio.ByteBuffer
import java.util.Arrays
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.paralagg.gang.{Codec, WordsCodec}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.unsafe.types.UTF8String

/**
 * The strings of a run by word, one instance an executor (docs/design.md, "Data in the loop").
 *
 * Strings of the inputs come first, in order, so their words compare as the strings do. Strings that rules derive get
 * the next numbers of this executor. Another executor may number them otherwise, so messages between executors are
 * translated ([[StringWords]]), and such words compare by the strings' bytes.
 */
final class Dictionary(val ranked: Array[UTF8String]) extends StringTable {
  private val words = new ConcurrentHashMap[UTF8String, Integer]()
  @volatile private var derived = Array.emptyObjectArray.asInstanceOf[Array[AnyRef]]
  private var size = 0

  override def get(word: Int): UTF8String =
    if (word < ranked.length) ranked(word) else derived(word - ranked.length).asInstanceOf[UTF8String]

  /** Returns the word of a string that a rule derived; any task may call it. */
  def word(s: UTF8String): Long = {
    val existing = words.get(s)
    if (existing != null) existing.longValue else words.computeIfAbsent(s.copy(), number(_)).longValue
  }

  def isDerived(word: Long): Boolean = word >= ranked.length && word <= Int.MaxValue

  /** Compares two words by their strings. The identity of `min` or `max` is no string but sorts correctly. */
  def less(a: Long, b: Long): Boolean = {
    def isString(w: Long) = w >= 0 && w <= Int.MaxValue
    if (isDerived(a) && isString(b) || isDerived(b) && isString(a)) get(a.toInt).compareTo(get(b.toInt)) < 0 else a < b
  }

  /** All strings by word; valid only after the last rule has run. */
  lazy val all: Array[UTF8String] = synchronized {
    if (size == 0) ranked
    else {
      val out = Arrays.copyOf(ranked, ranked.length + size)
      System.arraycopy(derived, 0, out, ranked.length, size)
      out
    }
  }

  private def number(s: UTF8String): Integer = {
    val rank = Arrays.binarySearch(ranked.asInstanceOf[Array[AnyRef]], s)
    if (rank >= 0) rank
    else synchronized {
      if (size == derived.length) derived = Arrays.copyOf(derived, math.max(64, size * 2))
      derived(size) = s
      size += 1
      ranked.length + size - 1
    }
  }
}

/** A section of a message: the number of rows, then `stride` words for each row, with strings in `columns`. */
final case class WordsSection(stride: Int, columns: Array[Int])

/**
 * The codec of messages between executors if rules derive strings. The strings are part of the message and get the
 * words of the executor that receives it.
 */
final class StringWords(sections: Array[WordsSection], strings: Dictionary) extends Codec[Array[Long]] {

  override def encode(message: Array[Long]): Array[Byte] = {
    val used = new LocalDictionary
    val words = message.clone()
    foreachDerived(words)(word => strings.ranked.length + used.add(strings.get(word)))
    val derived = Arrays.copyOf(used.strings, used.size)
    val plain = WordsCodec.encode(words)
    val out = ByteBuffer.allocate(4 + plain.length + Strings.bytes(derived))
    out.putInt(plain.length).put(plain)
    Strings.write(derived, out)
    out.array
  }

  override def decode(bytes: Array[Byte]): Array[Long] = {
    val in = ByteBuffer.wrap(bytes)
    val plain = new Array[Byte](in.getInt())
    in.get(plain)
    val words = WordsCodec.decode(plain)
    val received = Strings.read(in).map(strings.word)
    foreachDerived(words)(word => received(word - strings.ranked.length))
    words
  }

  private def foreachDerived(words: Array[Long])(translate: Int => Long): Unit = {
    var at = 0
    sections.foreach { section =>
      if (at < words.length) {
        val rows = words(at).toInt
        at += 1
        (0 until rows).foreach { _ =>
          section.columns.foreach { c =>
            if (strings.isDerived(words(at + c))) words(at + c) = translate(words(at + c).toInt)
          }
          at += section.stride
        }
      }
    }
  }
}

object StringWords {

  /** Returns the codec for messages of these sections: plain words if no rule derives strings. */
  def codec(stratum: StratumSpec, sections: => Array[WordsSection], strings: Dictionary): Codec[Array[Long]] =
    if (stratum.makesStrings) new StringWords(sections, strings) else WordsCodec
}
