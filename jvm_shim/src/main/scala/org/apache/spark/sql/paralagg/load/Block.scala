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
final class Block(val route: Int, columns: Int, capacity: Int = 0) extends Serializable {
  @volatile private var words: Array[Array[Long]] = Array.fill(columns)(new Array[Long](capacity))
  @volatile private var stored: Array[StoredWords] = null // instead of `words`
  val nulls: Array[BitSet] = new Array[BitSet](columns)
  private val width = new Array[Byte](columns) // 32 or 64 bits; 0: the column's words have not been looked at
  var rows: Int = 0

  /** Returns the words of a column, for at least `rows` rows; a copy if they are in a file. */
  def column(c: Int): Array[Long] = {
    val inMemory = words // another task may store them meanwhile
    if (inMemory != null) inMemory(c) else stored(c).read()
  }

  /** Returns the words of all columns. */
  def allColumns: Array[Array[Long]] = Array.tabulate(columns)(column)

  /** Makes room for `more` rows. */
  def reserve(more: Int): Unit = if (columns > 0 && rows + more > words(0).length) {
    val larger = math.min(math.max(rows.toLong + more, words(0).length * 2L), Int.MaxValue - 8).toInt
    words = words.map(Arrays.copyOf(_, larger))
  }

  /** Replaces the columns by these, which have `n` rows. */
  def fill(n: Int, columns: Array[Array[Long]]): Unit = {
    words = columns
    rows = n
  }

  def isNull(column: Int, row: Int): Boolean = nulls(column) != null && nulls(column).get(row)

  def setNull(column: Int, row: Int): Unit = {
    if (nulls(column) == null) nulls(column) = new BitSet()
    nulls(column).set(row)
  }

  /** Replaces each local string id by its entry of `ranks`. */
  def rank(c: Int, ranks: Array[Int]): Unit = {
    val a = column(c)
    var i = 0
    while (i < rows) {
      if (!isNull(c, i)) a(i) = ranks(a(i).toInt)
      i += 1
    }
    if (stored != null) stored(c).rewrite(a)
  }

  /** Tests whether all words of a column, whose rows are complete, fit into 32 bits. */
  def isNarrow(c: Int): Boolean = isNarrow(c, column(c))

  private def isNarrow(c: Int, words: => Array[Long]): Boolean = {
    if (width(c) == 0) width(c) = Block.width(words, rows)
    width(c) == 32
  }

  /** Moves the words to a file; another task may read or free them meanwhile. */
  def store(file: SpillFile): Unit = {
    val inMemory = words
    if (inMemory != null && inMemory.forall(_.length >= rows)) {
      // Now, so that `isNarrow` need not read the words back.
      (0 until columns).foreach(c => isNarrow(c, inMemory(c)))
      stored = inMemory.map(file.write(_, rows))
      words = null
    }
  }

  /** Releases the words, even if there are still references to the block. */
  def free(): Unit = {
    words = Array.fill(columns)(Array.emptyLongArray)
    stored = null
  }

  /** The bytes in memory. */
  def bytes: Long = {
    val inMemory = words
    if (inMemory == null) 0 else inMemory.map(_.length * 8L).sum
  }
}

private object Block {
  def width(words: Array[Long], n: Int): Byte = {
    var high = 0L
    var i = 0
    while (i < n) {
      high |= words(i) - Int.MinValue
      i += 1
    }
    if ((high >>> 32) == 0) 32 else 64
  }
}

/** The form in which a map task of the loading shuffle writes the blocks of one target task, with their strings. */
final class BlocksCodec(routes: Array[Route]) {

  def encode(blocks: Array[Block], strings: StringTable): Array[Byte] = {
    val used = new UsedStrings(strings)
    blocks.foreach { b =>
      routes(b.route).stringColumns.foreach { c =>
        val a = b.column(c)
        var i = 0
        while (i < b.rows) {
          if (!b.isNull(c, i)) a(i) = used.number(a(i).toInt)
          i += 1
        }
      }
    }
    val rows = 4 + blocks.map { b =>
      8 + b.nulls.indices.map(c => 4 + nullBytes(b, c).length + 8 * b.rows).sum
    }.sum
    val out = ByteBuffer.allocate(Math.addExact(rows, TextsCodec.bytes(used)))
    out.putInt(blocks.length)
    blocks.foreach { b =>
      out.putInt(b.route).putInt(b.rows)
      b.nulls.indices.foreach { c =>
        val nulls = nullBytes(b, c)
        out.putInt(nulls.length).put(nulls)
        out.asLongBuffer().put(b.column(c), 0, b.rows)
        out.position(out.position() + 8 * b.rows)
      }
    }
    TextsCodec.write(used, out.array, rows)
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
      val filled = new Block(route, routes(route).columns.length, rows)
      filled.rows = rows
      filled.nulls.indices.foreach { c =>
        val nulls = new Array[Byte](in.getInt())
        in.get(nulls)
        if (nulls.nonEmpty) filled.nulls(c) = BitSet.valueOf(nulls)
        in.asLongBuffer().get(filled.column(c), 0, rows)
        in.position(in.position() + 8 * rows)
      }
      filled
    }
    (blocks, TextsCodec.read(bytes, in.position()))
  }

  private def nullBytes(block: Block, column: Int): Array[Byte] =
    if (block.nulls(column) == null) Array.emptyByteArray else block.nulls(column).toByteArray
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
