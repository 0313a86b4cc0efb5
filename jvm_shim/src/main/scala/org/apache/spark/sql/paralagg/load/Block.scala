package org.apache.spark.sql.paralagg.load

import java.nio.ByteBuffer
import java.util.{Arrays, BitSet}

import org.apache.spark.unsafe.types.UTF8String

/**
 * Rows of one input on one route, by column: words, and the rows with nulls if the column has any. The words are in
 * memory or in a file.
 *
 * Words of string columns are local ids until [[Block.rank]] replaces them by ranks in the run's dictionary.
 */
final class Block(val route: Int, val rows: Int, columns: Array[WordColumn], val nulls: Array[BitSet]) {
  @volatile private var inMemory = columns
  @volatile private var stored: Array[StoredWords] = null // instead of `inMemory`

  /** Returns a column; reads it if it is in a file. */
  def column(c: Int): WordColumn = {
    val words = inMemory // another task may store them meanwhile
    if (words != null) words(c) else stored(c).read()
  }

  def allColumns: Array[WordColumn] = Array.tabulate(nulls.length)(column)

  /** The least and the greatest word of a column. */
  def limits(c: Int): (Long, Long) = {
    val words = inMemory
    if (words != null) (words(c).least, words(c).most) else (stored(c).least, stored(c).most)
  }

  def isNull(column: Int, row: Int): Boolean = nulls(column) != null && nulls(column).get(row)

  /** Replaces each local string id by its entry of `ranks`. */
  def rank(c: Int, ranks: Array[Int]): Unit = {
    val ranked = column(c).translated(ranks(_), nulls(c))
    val words = inMemory
    if (words != null) words(c) = ranked else stored(c) = stored(c).rewrite(ranked)
  }

  /** Tests whether all words of a column fit into 32 bits as they are. */
  def isNarrow(c: Int): Boolean = {
    val (least, most) = limits(c)
    rows == 0 || least >= Int.MinValue && most <= Int.MaxValue
  }

  /** Moves the words to a file; another task may read or free them meanwhile. */
  def store(file: SpillFile): Unit = {
    val words = inMemory
    if (words != null && words.length == nulls.length) {
      stored = words.map(file.write(_))
      inMemory = null
    }
  }

  /** Releases the words, even if there are still references to the block. */
  def free(): Unit = {
    inMemory = Array.empty
    stored = null
  }

  /** The bytes in memory. */
  def bytes: Long = {
    val words = inMemory
    if (words == null) 0 else words.map(_.bytes).sum
  }
}

/** Rows that are collected for a block. */
final class OpenBlock(route: Int, width: Int) {
  private var nulls = new Array[BitSet](width)

  /** The words by column, for at least `rows` rows. */
  var columns: Array[Array[Long]] = Array.fill(width)(Array.emptyLongArray)
  var rows: Int = 0

  /** Makes room for `more` rows. */
  def reserve(more: Int): Unit = if (width > 0 && rows + more > columns(0).length) {
    val larger = math.min(math.max(rows.toLong + more, columns(0).length * 2L), Int.MaxValue - 8).toInt
    columns = columns.map(Arrays.copyOf(_, larger))
  }

  def setNull(column: Int, row: Int): Unit = {
    if (nulls(column) == null) nulls(column) = new BitSet()
    nulls(column).set(row)
  }

  /** Returns the rows as a block. This one is empty then, and keeps its memory. */
  def close(): Block = {
    val block = new Block(route, rows, columns.map(WordColumn(_, rows)), nulls)
    nulls = new Array[BitSet](width)
    rows = 0
    block
  }
}

/** The form in which a map task of the loading shuffle writes the blocks of one target task, with their strings. */
final class BlocksCodec(routes: Array[Route]) {
  private val ColumnHeader = 4 + 2 * 8 // the length of the nulls, the limits of the words

  def encode(blocks: Array[Block], strings: StringTable): Array[Byte] = {
    val used = new UsedStrings(strings)
    val columns = blocks.map { b =>
      val isString = routes(b.route).stringColumns.toSet
      b.allColumns.zipWithIndex.map { case (a, c) =>
        if (isString(c)) a.translated(used.number, b.nulls(c)) else a
      }
    }
    val nulls = blocks.map(_.nulls.map(n => if (n == null) Array.emptyByteArray else n.toByteArray))
    val rows = 4 + blocks.indices.map { i =>
      8 + columns(i).indices.map(c => ColumnHeader + nulls(i)(c).length + columns(i)(c).bytes).sum
    }.sum
    val out = ByteBuffer.allocate(Math.toIntExact(rows + TextsCodec.bytes(used)))
    out.putInt(blocks.length)
    blocks.indices.foreach { i =>
      out.putInt(blocks(i).route).putInt(blocks(i).rows)
      columns(i).indices.foreach { c =>
        out.putInt(nulls(i)(c).length).put(nulls(i)(c)).putLong(columns(i)(c).least).putLong(columns(i)(c).most)
        columns(i)(c).write(out)
      }
    }
    TextsCodec.write(used, out.array, rows.toInt)
    out.array
  }

  /** Decodes the blocks and adds their strings to `strings`. */
  def decode(bytes: Array[Byte], strings: LocalDictionary): Array[Block] = {
    val (blocks, received) = decode(bytes)
    val ids = Array.tabulate(received.size)(i => strings.add(received.get(i)))
    blocks.foreach(b => routes(b.route).stringColumns.foreach(c => b.rank(c, ids)))
    blocks
  }

  /** Decodes the blocks; their strings stay in `bytes`. */
  def decode(bytes: Array[Byte]): (Array[Block], Texts) = {
    val in = ByteBuffer.wrap(bytes)
    val blocks = Array.fill(in.getInt()) {
      val route = in.getInt()
      val rows = in.getInt()
      val columns = routes(route).columns.map { _ =>
        val nulls = new Array[Byte](in.getInt())
        in.get(nulls)
        val (least, most) = (in.getLong(), in.getLong())
        (WordColumn.read(in, rows, least, most), if (nulls.isEmpty) null else BitSet.valueOf(nulls))
      }
      new Block(route, rows, columns.map(_._1), columns.map(_._2))
    }
    (blocks, TextsCodec.read(bytes, in.position()))
  }
}

/** The strings of a table that blocks use, numbered in the order of their first use. */
private final class UsedStrings(strings: StringTable) extends StringTable {
  private lazy val numbers = new Array[Int](strings.size) // by word: number + 1
  private val words = new LongBuffer

  override def size: Int = words.size
  override def get(number: Int): UTF8String = strings.get(words.array(number).toInt)

  def number(word: Int): Int = {
    if (numbers(word) == 0) {
      words.add(word)
      numbers(word) = words.size
    }
    numbers(word) - 1
  }
}
