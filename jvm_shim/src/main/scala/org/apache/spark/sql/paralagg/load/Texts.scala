package org.apache.spark.sql.paralagg.load

import java.util.Arrays

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32
import org.apache.spark.unsafe.types.UTF8String

/** Strings by word. */
trait StringTable {
  def size: Int
  def get(word: Int): UTF8String

  /** Returns Spark's Murmur3Hash of a string as the first column. */
  def hash(word: Int): Int = Texts.hash(get(word), Words.Seed)
}

/**
 * A growable list of strings in few large arrays, as Arrow holds them: an object for each string would cost the garbage
 * collector more than the bytes. Each string follows its length (4 bytes) in one of the `chunks`.
 */
class Texts extends StringTable {
  import Texts._

  private var chunks = new Array[Array[Byte]](4)
  private var chunk = -1 // the open one
  private var used = 0 // bytes of the open chunk
  private var places = new Array[Long](16) // by string: chunk << 32 | position
  private var count = 0

  final override def size: Int = count

  /** The bytes in memory. */
  def bytes: Long = 8L * places.length + chunks.iterator.filter(_ != null).map(_.length.toLong).sum

  /** Returns a view of a string: its bytes stay where they are. */
  final override def get(word: Int): UTF8String = {
    val place = places(word)
    val bytes = chunks((place >>> 32).toInt)
    val at = Platform.BYTE_ARRAY_OFFSET + place.toInt
    UTF8String.fromAddress(bytes, at + LengthBytes, Platform.getInt(bytes, at))
  }

  /** Appends a copy of a string; returns its word. */
  final def append(s: UTF8String): Int = {
    val needed = LengthBytes + s.numBytes
    if (chunk < 0 || chunks(chunk).length - used < needed) openChunk(needed)
    val at = Platform.BYTE_ARRAY_OFFSET + used
    Platform.putInt(chunks(chunk), at, s.numBytes)
    s.writeToMemory(chunks(chunk), at + LengthBytes)
    place(used)
    used += needed
    count - 1
  }

  /** Appends `n` strings that are already laid out in `bytes` from `from` on, without a copy; returns their end. */
  final def adopt(bytes: Array[Byte], from: Int, n: Int): Int = {
    addChunk(bytes)
    places = Arrays.copyOf(places, math.max(places.length, count + n))
    var at = from
    (0 until n).foreach { _ =>
      place(at)
      at += LengthBytes + Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET + at)
    }
    used = bytes.length
    at
  }

  private def place(at: Int): Unit = {
    if (count == places.length) places = Arrays.copyOf(places, count * 2)
    places(count) = chunk.toLong << 32 | at
    count += 1
  }

  private def openChunk(needed: Int): Unit = {
    val size = if (chunk < 0) FirstBytes else math.min(MostBytes, chunks(chunk).length * 2)
    addChunk(new Array[Byte](math.max(size, needed)))
  }

  private def addChunk(bytes: Array[Byte]): Unit = {
    chunk += 1
    if (chunk == chunks.length) chunks = Arrays.copyOf(chunks, chunk * 2)
    chunks(chunk) = bytes
    used = 0
  }
}

object Texts {
  private[load] val LengthBytes = 4
  private val FirstBytes = 1 << 10
  private val MostBytes = 1 << 22

  def hash(s: UTF8String, seed: Int): Int =
    Murmur3_x86_32.hashUnsafeBytes(s.getBaseObject, s.getBaseOffset, s.numBytes, seed)

  def apply(strings: UTF8String*): Texts = {
    val texts = new Texts
    strings.foreach(texts.append)
    texts
  }
}

/** The strings that one task has read, each once, numbered in that order (docs/design.md, "Data in the loop"). */
final class LocalDictionary extends Texts {
  private var slots = new Array[Long](64) // hash << 32 | id + 1
  private var mask = 63
  private var hashes = new Array[Int](16)

  override def hash(word: Int): Int = hashes(word)
  override def bytes: Long = super.bytes + 8L * slots.length + 4L * hashes.length

  def add(s: UTF8String): Int = {
    val hash = Texts.hash(s, Words.Seed)
    var slot = hash & mask
    while (slots(slot) != 0) {
      if ((slots(slot) >>> 32).toInt == hash) {
        val id = slots(slot).toInt - 1
        if (get(id) == s) return id
      }
      slot = (slot + 1) & mask
    }
    val id = append(s)
    slots(slot) = hash.toLong << 32 | (id + 1)
    if (id == hashes.length) hashes = Arrays.copyOf(hashes, id * 2)
    hashes(id) = hash
    if (size * 2 > mask) grow()
    id
  }

  private def grow(): Unit = {
    mask = slots.length * 2 - 1
    slots = new Array[Long](slots.length * 2)
    var id = 0
    while (id < size) {
      var slot = hashes(id) & mask
      while (slots(slot) != 0) slot = (slot + 1) & mask
      slots(slot) = hashes(id).toLong << 32 | (id + 1)
      id += 1
    }
  }
}
