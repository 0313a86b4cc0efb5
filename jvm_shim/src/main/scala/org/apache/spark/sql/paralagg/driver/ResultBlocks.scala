package org.apache.spark.sql.paralagg.driver

import java.io.NotSerializableException

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.SparkException
import org.apache.spark.sql.paralagg.load.{Block, BlocksCodec, Dictionary, OpenBlock, Owner, Route, WordColumn}
import org.apache.spark.sql.paralagg.loop.BitmapBlock
import org.apache.spark.sql.paralagg.plan.RelationSpec
import org.apache.spark.sql.paralagg.state.RelationPart
import org.apache.spark.sql.types.{BooleanType, LongType}
import org.apache.spark.sql.vectorized.{ColumnarBatch, ColumnVector}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.Utils

/**
 * The format of results: blocks of bytes for the partition that owns the rows. The first byte is the kind: rows by
 * column, pairs as bitmaps, or an error that the reader throws (Spark would try a gang that throws it four times). If
 * `hasFlag`, rows have a flag behind the relation's columns.
 */
final class ResultBlocks(relation: RelationSpec, hasFlag: Boolean = false) {
  private val types = relation.columns.map(_.dataType) ++ (if (hasFlag) Seq(BooleanType) else Nil)
  private val route = Route(0, 0, types.indices.toArray, types, Array.empty, everywhere = false, Array.empty)
  private val codec = new BlocksCodec(Array(route))

  /** Encodes the rows of a part that belong to the result; see `all`. */
  def rows(
      p: RelationPart,
      candidates: Iterator[Int],
      strings: Dictionary,
      targets: Int,
      task: Int,
      tasks: Int): Iterator[(Int, Array[Byte])] =
    all(p, candidates.filter(p.isResult), strings, targets, task, tasks, flag = false)

  /**
   * Encodes rows of a part, those of `task` by its owner's hash, a block for each target and about 2^20 rows. They get
   * the `flag`, if there is one.
   */
  def all(
      p: RelationPart,
      ids: Iterator[Int],
      strings: Dictionary,
      targets: Int,
      task: Int,
      tasks: Int,
      flag: Boolean): Iterator[(Int, Array[Byte])] = {
    val aligned = tasks == targets
    val owner = new Owner(p.spec, p.spec.distributeBy, p.shape.hasNullKeys, targets, strings)
    new Iterator[Iterator[(Int, Array[Byte])]] {
      override def hasNext: Boolean = ids.hasNext
      override def next(): Iterator[(Int, Array[Byte])] = {
        val blocks = Array.fill(targets)(new OpenBlock(0, types.length))
        var n = 0
        while (n < ResultBlocks.Rows && ids.hasNext) {
          val id = ids.next()
          append(blocks(if (aligned) task else owner.taskOf(p.keys.words, id * p.keys.arity)), p, id, whole, flag)
          n += 1
        }
        blocks.iterator.zipWithIndex.collect { case (b, t) if b.rows > 0 => (t, encode(b, strings)) }
      }
    }.flatMap(identity)
  }

  private def encode(b: OpenBlock, strings: Dictionary): Array[Byte] =
    0.toByte +: codec.encode(Array(b.close()), strings)

  /** The keys of the relation that a part has too: all of them, or those that are not carried. */
  private val whole = relation.keys.indices.toArray

  /** Appends row `id` of a part whose keys are the relation's `keys`. */
  private def append(b: OpenBlock, p: RelationPart, id: Int, keys: Array[Int], flag: Boolean = false): Unit = {
    val mask = if (p.shape.hasNullKeys) p.keys.word(id, keys.length) else 0L
    b.reserve(1)
    var c = 0
    while (c < keys.length) {
      if ((mask >> c & 1) != 0) b.setNull(keys(c), b.rows)
      b.columns(keys(c))(b.rows) = p.keys.word(id, c)
      c += 1
    }
    val k = relation.keys.length
    var j = 0
    while (j < relation.dependents.length) {
      val valid = p.state.valid(j)
      if (valid != null && valid(id) == 0) {
        b.setNull(k + j, b.rows)
        b.columns(k + j)(b.rows) = 0
      } else b.columns(k + j)(b.rows) = p.state.columns(j)(id)
      j += 1
    }
    if (hasFlag) b.columns(types.length - 1)(b.rows) = if (flag) 1 else 0
    b.rows += 1
  }

  /** Collects the rows of parts that lack the `carried` keys, for one value of these at a time. */
  def decomposed(carried: Array[Int], strings: Dictionary, targets: Int): DecomposedBlocks =
    new DecomposedBlocks(carried, strings, targets)

  final class DecomposedBlocks(carried: Array[Int], strings: Dictionary, targets: Int) {
    private val owner = new Owner(relation, relation.distributeBy, hasMask = false, targets, strings)
    private val moving = whole.filterNot(carried.contains)
    private val open = Array.fill(targets)(new OpenBlock(0, types.length))
    private val full = ArrayBuffer.empty[(Int, Array[Byte])]

    /** Appends the rows with these values of the carried keys, by which they are distributed. */
    def add(values: Array[Long], p: RelationPart): Unit = {
      val key = new Array[Long](relation.keys.length)
      carried.indices.foreach(i => key(carried(i)) = values(i))
      val target = owner.taskOf(key)
      val b = open(target)
      var id = 0
      while (id < p.keys.size) {
        if (p.isResult(id)) {
          append(b, p, id, moving)
          carried.indices.foreach(i => b.columns(carried(i))(b.rows - 1) = values(i))
        }
        id += 1
      }
      if (b.rows >= ResultBlocks.Rows) close(target)
    }

    def blocks: Iterator[(Int, Array[Byte])] = {
      open.indices.foreach(close)
      full.iterator
    }

    private def close(target: Int): Unit = if (open(target).rows > 0) {
      full += target -> encode(open(target), strings)
    }
  }

  /** Encodes a block of bitmaps. All of its x are owned by `task`; if not `aligned`, each x goes to its partition. */
  def bitmaps(
      b: BitmapBlock, moving: Int, strings: Dictionary, targets: Int, task: Int, aligned: Boolean)
      : Iterator[(Int, Array[Byte])] =
    if (aligned) Iterator((task, 2.toByte +: encodeBitmaps(b, moving, strings)))
    else {
      val owner = new Owner(relation, relation.distributeBy, hasMask = false, targets, strings)
      val row = new Array[Long](2)
      val owners = b.xs.map { x =>
        row(1 - moving) = x
        owner.taskOf(row)
      }
      owners.distinct.iterator.map { t =>
        (t, 2.toByte +: encodeBitmaps(b.only(owners.map(_ == t)), moving, strings))
      }
    }

  /** The codec of bitmaps: xs and ys, as keys of the relation, then two columns of longs. */
  private def bitmapCodec = new BlocksCodec((types :+ LongType :+ LongType).zipWithIndex.map { case (t, c) =>
    Route(c, 0, Array(0), Array(t), Array.empty, everywhere = false, Array.empty)
  })

  /** Encodes xs, ys, the bits, and the position of y's column with the width. */
  private def encodeBitmaps(b: BitmapBlock, moving: Int, strings: Dictionary): Array[Byte] = {
    val columns = Array(b.xs, b.ys, b.bits, Array(moving.toLong, b.width.toLong))
    val blocks = Array(1 - moving, moving, 2, 3).zip(columns).map { case (route, words) =>
      new Block(route, words.length, Array(WordColumn(words, words.length)), Array(null))
    }
    bitmapCodec.encode(blocks, strings)
  }

  private def readBitmaps(bytes: Array[Byte]): Iterator[ColumnarBatch] = {
    val (blocks, strings) = bitmapCodec.decode(bytes)
    val Array(xs, ys, bits, Array(moving, width)) = blocks.map(_.column(0).toArray)
    new BitmapRows(BitmapBlock(xs, ys, width.toInt, bits)).map { pairs =>
      val columns = new Array[ColumnVector](2)
      val carried = 1 - moving.toInt
      columns(carried) = new WordVector(types(carried), () => WordColumn(pairs.xs), null, strings)
      columns(moving.toInt) = new WordVector(types(moving.toInt), () => WordColumn(pairs.ys), null, strings)
      new ColumnarBatch(columns, pairs.size)
    }
  }

  def error(cause: Throwable, targets: Int): Iterator[(Int, Array[Byte])] = {
    val bytes = 1.toByte +: ResultBlocks.serialize(cause)
    (0 until targets).iterator.map(_ -> bytes)
  }

  /** Decodes one block to batches; throws the error in it. */
  def read(bytes: Array[Byte]): Iterator[ColumnarBatch] = bytes(0) match {
    case 1 => throw Utils.deserialize[Throwable](bytes.drop(1), Utils.getContextOrSparkClassLoader)
    case 2 => readBitmaps(bytes.drop(1))
    case _ =>
      val (blocks, strings) = codec.decode(bytes.drop(1))
      blocks.iterator.map { b =>
        val columns = types.indices.map { c =>
          new WordVector(types(c), () => b.column(c), b.nulls(c), strings): ColumnVector
        }
        new ColumnarBatch(columns.toArray, b.rows)
      }
  }
}

object ResultBlocks {
  private val Rows = 1 << 20

  private def serialize(cause: Throwable): Array[Byte] =
    try Utils.serialize(cause)
    catch { case _: NotSerializableException => Utils.serialize(new SparkException(cause.toString)) }
}
