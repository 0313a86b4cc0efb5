package org.apache.spark.sql.paralagg.gang

import java.nio.{ByteBuffer, ByteOrder}

/** The bytes of a payload between executors; within one executor it is passed by reference. */
trait Codec[T] {
  def encode(value: T): Array[Byte]
  def decode(bytes: Array[Byte]): T
}

/** Words as little-endian bytes. */
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
