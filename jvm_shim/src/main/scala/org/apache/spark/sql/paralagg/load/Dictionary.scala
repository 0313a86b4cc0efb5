package org.apache.spark.sql.paralagg.load

import java.nio.ByteBuffer
import java.util.Arrays
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import org.apache.spark.sql.paralagg.gang.{Codec, WordsCodec}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.unsafe.types.UTF8String

/**
 * The strings of a run by word, one instance an executor (docs/design.md, "Data in the loop").
 *
 * Strings of the inputs come first, in order, so their words compare as the strings do. Strings that rules derive get
 * the next numbers of this executor. Another executor may number them otherwise, so messages between executors are
 * translated ([[StringWords]]), and such words compare by the strings' bytes. A run that goes on from a kept state has
 * that state's dictionary: strings that are new in its inputs get the next numbers, the same on all executors
 * ([[Strings.append]]).
 */
final class Dictionary(ranked: SortedTexts, val mappedBytes: Long) extends StringTable {
  private val words = new ConcurrentHashMap[UTF8String, Integer]()
  @volatile private var derived = Array.emptyObjectArray.asInstanceOf[Array[AnyRef]]
  @volatile private var derivedSize = 0

  override def size: Int = ranked.size + derivedSize

  override def get(word: Int): UTF8String =
    if (word < ranked.size) ranked.get(word) else derived(word - ranked.size).asInstanceOf[UTF8String]

  /** The number of strings of the inputs. */
  def rankedSize: Int = ranked.size

  /** The bytes in memory; those of derived strings without their words. */
  def bytes: Long =
    ranked.bytes + (0 until derivedSize).map(i => derived(i).asInstanceOf[UTF8String].numBytes.toLong).sum

  /** Returns the word of a string; -1 if it has none. */
  def find(s: UTF8String): Int = Option(words.get(s)).fold(ranked.find(s))(_.intValue)

  /** Returns the word of a string, which gets the next one if it has none; any task may call it. */
  def word(s: UTF8String): Long = {
    val existing = words.get(s)
    if (existing != null) existing.longValue else words.computeIfAbsent(s.copy(), number(_)).longValue
  }

  def isDerived(word: Long): Boolean = word >= ranked.size && word <= Int.MaxValue

  /** Compares two words by their strings. The identity of `min` or `max` is no string but sorts correctly. */
  def less(a: Long, b: Long): Boolean = {
    def isString(w: Long) = w >= 0 && w <= Int.MaxValue
    if (isDerived(a) && isString(b) || isDerived(b) && isString(a)) get(a.toInt).compareTo(get(b.toInt)) < 0 else a < b
  }

  private def number(s: UTF8String): Integer = {
    val rank = ranked.find(s)
    if (rank >= 0) rank
    else synchronized {
      if (derivedSize == derived.length) derived = Arrays.copyOf(derived, math.max(64, derivedSize * 2))
      derived(derivedSize) = s
      derivedSize += 1
      size - 1
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
    val used = mutable.LongMap.empty[Int]
    val texts = new Texts
    val words = message.clone()
    foreachDerived(words)(word => strings.rankedSize + used.getOrElseUpdate(word, texts.append(strings.get(word))))
    val plain = WordsCodec.encode(words)
    val out = ByteBuffer.allocate(4 + plain.length + TextsCodec.bytes(texts))
    out.putInt(plain.length).put(plain)
    TextsCodec.write(texts, out.array, out.position())
    out.array
  }

  override def decode(bytes: Array[Byte]): Array[Long] = {
    val in = ByteBuffer.wrap(bytes)
    val plain = new Array[Byte](in.getInt())
    in.get(plain)
    val words = WordsCodec.decode(plain)
    val texts = TextsCodec.read(bytes, in.position())
    val received = Array.tabulate(texts.size)(i => strings.word(texts.get(i)))
    foreachDerived(words)(word => received(word - strings.rankedSize))
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
