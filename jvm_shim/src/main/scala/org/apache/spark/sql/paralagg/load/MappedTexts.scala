package org.apache.spark.sql.paralagg.load

import org.apache.spark.sql.paralagg.gang.{Codec, Gang}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Strings in a mapped file: where each of them begins, and where the last one ends (4 bytes each), then their bytes. */
private[load] final class MappedTexts private (override val size: Int, ends: Long) extends StringTable {
  import MappedTexts._

  private val bytes = ends + PlaceBytes * (size + 1)

  /** Returns a view of a string: its bytes stay where they are. */
  override def get(word: Int): UTF8String = {
    val from = place(word)
    UTF8String.fromAddress(null, bytes + from, place(word + 1) - from)
  }

  private def place(word: Int): Int = Platform.getInt(null, ends + PlaceBytes * word)

  private def fill(strings: Iterator[UTF8String]): Unit = {
    var at = 0
    var word = 0
    strings.foreach { s =>
      s.writeToMemory(null, bytes + at)
      at += s.numBytes
      word += 1
      Platform.putInt(null, ends + PlaceBytes * word, at)
    }
  }
}

private[load] object MappedTexts {
  private val PlaceBytes = 4L

  /** Returns a copy of strings in mapped files, which are closed when the gang ends. */
  def apply(strings: StringTable, gang: Gang): StringTable = {
    val parts = Array.newBuilder[StringTable]
    var from = 0
    while (from < strings.size) {
      var until = from
      var needed = PlaceBytes
      while (until < strings.size && needed + PlaceBytes + strings.get(until).numBytes <= MappedFile.MostBytes) {
        needed += PlaceBytes + strings.get(until).numBytes
        until += 1
      }
      val file = new MappedFile("strings", needed)
      gang.closeAtEnd(file)
      val part = new MappedTexts(until - from, file.address)
      part.fill((from until until).iterator.map(strings.get))
      parts += part
      from = until
    }
    new SortedTexts(parts.result())
  }
}

/** The codec of strings that are received into mapped files. */
private[load] final class MappedTextsCodec(gang: Gang) extends Codec[StringTable] {
  override def encode(strings: StringTable): Array[Byte] = TextsCodec.encode(strings)

  override def decode(bytes: Array[Byte]): StringTable = MappedTexts(TextsCodec.decode(bytes), gang)
}
