package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.gang.{Gang, WordsCodec}
import org.apache.spark.sql.paralagg.load.{LongBuffer, StringTable, Texts, TextsCodec}
import org.apache.spark.sql.paralagg.state.{LongKeyMap, LoopState, RelationPart, RowAddress}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The search for the cycle of a run that climbs without end. Each change of a traced run records the row that it was
 * derived from. If values improve for ever, these parents form a cycle, as in the Bellman-Ford algorithm; the error
 * shows its keys.
 */
final class CycleTrace(loop: LoopState, gang: Gang) {

  /** Returns the keys of a cycle in its order, or nothing. Collective: all tasks get the same result. */
  def find(): Seq[String] = {
    val pairs = new LongBuffer
    loop.parts.foreach { p =>
      (0 until p.keys.size).foreach { id =>
        if (p.state.parents(id) >= 0) {
          pairs.add(RowAddress.of(p.index, loop.me, id))
          pairs.add(p.state.parents(id))
        }
      }
    }
    val out = new Array[Array[Long]](loop.tasks)
    out(0) = pairs.trimmed
    val (in, _) = gang.exchange(out, WordsCodec, Array.emptyDoubleArray)
    val ownNodes = if (loop.me == 0) cycle(in) else Array.emptyLongArray
    val nodes = gang.allgather(ownNodes, WordsCodec).head
    val texts = nodes.zipWithIndex.collect {
      case (n, at) if RowAddress.task(n) == loop.me =>
        UTF8String.fromString(s"$at ${text(loop.part(RowAddress.relation(n)), RowAddress.id(n))}")
    }
    val all = gang.allgather[StringTable](Texts(texts.toSeq: _*), TextsCodec).flatMap(t => (0 until t.size).map(t.get))
    all.map(_.toString.split(" ", 2)).sortBy(_(0).toInt).map(_(1)).toSeq
  }

  private def cycle(parts: Array[Array[Long]]): Array[Long] = {
    val ids = new LongKeyMap
    val parent = new LongBuffer
    parts.filter(_ != null).foreach(pairs => (0 until pairs.length by 2).foreach(i => ids.addWord(pairs(i))))
    (0 until ids.size).foreach(_ => parent.add(-1))
    parts.filter(_ != null).foreach { pairs =>
      (0 until pairs.length by 2).foreach(i => parent.array(ids.findWord(pairs(i))) = ids.findWord(pairs(i + 1)))
    }
    val walk = new Array[Int](ids.size) // the first walk that reached the node
    var nodes = Array.emptyLongArray
    var start = 0
    while (start < ids.size && nodes.isEmpty) {
      var at = start
      while (at >= 0 && walk(at) == 0) {
        walk(at) = start + 1
        at = parent.array(at).toInt
      }
      if (at >= 0 && walk(at) == start + 1) {
        val around = Iterator.iterate(at)(i => parent.array(i).toInt).drop(1).takeWhile(_ != at).toSeq
        nodes = (at +: around).reverse.map(ids.words(_)).toArray // parents point backwards
      }
      start += 1
    }
    nodes
  }

  /** Returns the text of a key. */
  private def text(p: RelationPart, id: Int): String = {
    val k = p.spec.keys.length
    val mask = if (p.shape.hasNullKeys) p.keys.word(id, k) else 0L
    val columns = p.spec.keys.zipWithIndex.map { case (column, c) =>
      s"${column.name}=${if ((mask >> c & 1) != 0) "null" else text(column.dataType, p.keys.word(id, c))}"
    }
    columns.mkString("(", ", ", ")")
  }

  private def text(t: DataType, word: Long): String = t match {
    case _: StringType => loop.strings.get(word.toInt).toString
    case DoubleType => java.lang.Double.longBitsToDouble(word).toString
    case FloatType => java.lang.Float.intBitsToFloat(word.toInt).toString
    case BooleanType => (word != 0).toString
    case d: DecimalType => java.math.BigDecimal.valueOf(word, d.scale).toPlainString
    case DateType => java.time.LocalDate.ofEpochDay(word).toString
    case _ => word.toString
  }
}
