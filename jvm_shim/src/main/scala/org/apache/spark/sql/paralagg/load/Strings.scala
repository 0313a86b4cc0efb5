package org.apache.spark.sql.paralagg.load

import java.nio.ByteBuffer
import java.util.Arrays

import org.apache.spark.sql.paralagg.gang.Codec
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Strings by word. */
trait StringTable {
  def get(word: Int): UTF8String
}

/** The strings that one task has read, numbered in that order (docs/design.md, "Data in the loop"). */
final class LocalDictionary extends StringTable {
  private val ids = new java.util.HashMap[UTF8String, Integer]()
  private var interned = new Array[UTF8String](16)

  def size: Int = ids.size

  override def get(word: Int): UTF8String = interned(word)

  def add(s: UTF8String): Int = {
    val existing = ids.get(s)
    if (existing != null) existing
    else {
      val id = ids.size
      val copy = s.copy() // the reader reuses its buffers
      ids.put(copy, id)
      if (id == interned.length) interned = Arrays.copyOf(interned, id * 2)
      interned(id) = copy
      id
    }
  }

  /** Returns the strings by id; the array is longer than `size`. */
  def strings: Array[UTF8String] = interned

  def sorted: Array[UTF8String] =
    Arrays.stream(interned, 0, size).sorted().toArray[UTF8String](new Array[UTF8String](_))

  /** Returns the rank of each local id in `global`, which holds all strings of the run in order. */
  def ranksIn(global: Array[UTF8String]): Array[Int] = Array.tabulate(size) { id =>
    Arrays.binarySearch(global.asInstanceOf[Array[AnyRef]], interned(id))
  }
}

/**
 * All strings of a run, sorted: a string's word is its rank, so words compare as Spark compares the strings (by bytes),
 * and every executor computes the same rank without a message. Held once an executor.
 */
object Strings extends Codec[Array[UTF8String]] {

  /** Returns all strings in order, each once. The sort is a merge, since the parts are sorted. */
  def merge(parts: Array[Array[UTF8String]]): Array[UTF8String] =
    Arrays.stream(parts.flatten).sorted().distinct().toArray[UTF8String](new Array[UTF8String](_))

  override def encode(strings: Array[UTF8String]): Array[Byte] = {
    val out = ByteBuffer.allocate(4 + strings.map(_.numBytes + 4).sum)
    write(strings, out)
    out.array
  }

  override def decode(bytes: Array[Byte]): Array[UTF8String] = read(ByteBuffer.wrap(bytes))

  def write(strings: Array[UTF8String], out: ByteBuffer): Unit = {
    out.putInt(strings.length)
    strings.foreach { s =>
      out.putInt(s.numBytes)
      s.writeTo(out)
    }
  }

  def bytes(strings: Array[UTF8String]): Int = 4 + strings.map(_.numBytes + 4).sum

  def read(in: ByteBuffer): Array[UTF8String] = Array.fill(in.getInt()) {
    val bytes = new Array[Byte](in.getInt())
    in.get(bytes)
    UTF8String.fromAddress(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length)
  }
}
