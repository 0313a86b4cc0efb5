package org.apache.spark.sql.paralagg.gang

import java.nio.{ByteBuffer, ByteOrder}

/** How a payload crosses between executors. Inside one executor it is handed over as it is. */
trait Codec[T] {
  def encode(value: T): Array[Byte]
  def decode(bytes: Array[Byte]): T
}

/** Words, in the order of the machine. */
object WordsCodec extends Codec[Array[Long]] {
  override def encode(words: Array[Long]): Array[Byte] = {
    val out = ByteBuffer.allocate(words.length * 8).order(ByteOrder.LITTLE_ENDIAN)
    out.asLongBuffer().put(words)
    out.array
  }
  override def decode(bytes: Array[Byte]): Array[Long] = {
    val words = new Array[Long](bytes.length / 8)
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(words)
    words
  }
}
