package org.apache.spark.sql.paralagg.load

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.{ColumnarArray, ColumnarBatch, ColumnVector}

/**
 * The reader of inputs: it packs the words of rows or column batches into blocks, for each route and target task
 * (docs/design.md, "Loading"). Rows are not shuffled one by one, but as a few large blocks.
 *
 * @param first the target that gets the first row of an `everywhere` route; such rows are distributed in turn,
 *              and every executor gathers them later
 * @param whenFull gets each full block, which the loader does not change any more
 */
final class Loader(
    routes: Routes,
    inputTypes: Map[Int, Array[DataType]],
    tasks: Int,
    first: Int,
    whenFull: Block => Unit = _ => ()) {
  import Loader._

  val strings = new LocalDictionary

  private val wordTypes = inputTypes.map { case (input, types) => input -> types.map(Words.of) }
  private val openBlocks = Array.fill(tasks)(routes.all.map(r => new OpenBlock(r.id, r.columns.length)))
  private val fullBlocks = Array.fill(tasks)(ArrayBuffer.empty[Block])
  private val targets = new Array[Int](BatchRows)
  private val selected = new Array[Int](BatchRows * tasks) // rows of the batch by target
  private val counts = new Array[Int](tasks)
  // Of the rows at hand, by column of the source:
  private var words: Array[Array[Long]] = Array.empty
  private var nulls: Array[Array[Boolean]] = Array.empty // null where the column has none

  def readRows(input: Int, rows: Iterator[InternalRow], check: () => Unit): Unit = {
    val types = wordTypes(input)
    val columns = types.indices.toArray
    prepare(types.length)
    var n = 0
    while (rows.hasNext) {
      val row = rows.next()
      var c = 0
      while (c < types.length) {
        if (row.isNullAt(c)) markNull(c, n) else words(c)(n) = types(c).read(row, c, strings)
        c += 1
      }
      n += 1
      if (n == BatchRows) {
        scatter(input, columns, n)
        prepare(types.length)
        check()
        n = 0
      }
    }
    scatter(input, columns, n)
  }

  /** Reads batches for each of `uses`; a column that several uses have is read once. */
  def readBatches(uses: Seq[InputUse], batches: Iterator[ColumnarBatch], check: () => Unit): Unit = {
    val read = uses.map(u => u.ordinals.zip(wordTypes(u.input)))
    val types = read.flatten.distinct
    val columns = read.map(_.map(types.indexOf(_)))
    batches.foreach { batch =>
      var from = 0
      while (from < batch.numRows()) {
        val n = math.min(BatchRows, batch.numRows() - from)
        prepare(types.length)
        types.indices.foreach(c => readColumn(types(c)._2, batch.column(types(c)._1), from, n, c))
        uses.indices.foreach(u => scatter(uses(u).input, columns(u), n))
        from += n
      }
      check()
    }
  }

  private def readColumn(t: WordType, vector: ColumnVector, from: Int, n: Int, c: Int): Unit = {
    val out = words(c)
    if (vector.hasNull) {
      var i = 0
      while (i < n) {
        if (vector.isNullAt(from + i)) markNull(c, i)
        i += 1
      }
    }
    val nullRows = nulls(c)
    var i = 0
    t match {
      case LongWord if nullRows == null =>
        while (i < n) {
          out(i) = vector.getLong(from + i)
          i += 1
        }
      case IntWord("int") if nullRows == null =>
        while (i < n) {
          out(i) = vector.getInt(from + i)
          i += 1
        }
      case DoubleWord if nullRows == null =>
        while (i < n) {
          out(i) = DoubleWord.word(vector.getDouble(from + i))
          i += 1
        }
      case _ =>
        val cells = new ColumnarArray(vector, from, n)
        while (i < n) {
          if (nullRows == null || !nullRows(i)) out(i) = t.read(cells, i, strings)
          i += 1
        }
    }
  }

  /** Makes room for the next rows. */
  private def prepare(columns: Int): Unit = {
    if (words.length < columns) words = Array.fill(columns)(new Array[Long](BatchRows))
    nulls = new Array[Array[Boolean]](columns)
  }

  private def markNull(column: Int, row: Int): Unit = {
    if (nulls(column) == null) nulls(column) = new Array[Boolean](BatchRows)
    nulls(column)(row) = true
    words(column)(row) = 0
  }

  /** Returns the blocks of each target, once; a route may have several. */
  def blocks(): Array[Array[Block]] = fullBlocks.zip(openBlocks).map { case (done, last) =>
    (done ++ last.filter(_.rows > 0).map(_.close())).toArray
  }

  /** Adds the first `n` rows of `words` to the blocks of every route of the input, which has `columns` of them. */
  private def scatter(input: Int, columns: Array[Int], n: Int): Unit = if (n > 0) {
    routes.ofInput(input).foreach { route =>
      val target = assign(input, columns, route, n)
      val routed = route.columns.map(columns)
      if (target >= 0 && routed.forall(nulls(_) == null)) append(block(target, route, n), routed, n)
      else {
        if (target >= 0) java.util.Arrays.fill(targets, 0, n, target)
        dropNullKeys(route.notNull.map(columns), n)
        select(n)
        (0 until tasks).foreach(t =>
          if (counts(t) > 0) gather(block(t, route, counts(t)), routed, t * BatchRows, counts(t)))
      }
    }
  }

  /** Returns the open block of a target with room for `more` rows; empties a full one before. */
  private def block(target: Int, route: Route, more: Int): OpenBlock = {
    val open = openBlocks(target)(route.id)
    if (open.rows + more > BlockRows) {
      val full = open.close()
      fullBlocks(target) += full
      whenFull(full)
    }
    open.reserve(more)
    open
  }

  /** Fills `targets` and returns -1, or returns the target if all rows have the same. */
  private def assign(input: Int, columns: Array[Int], route: Route, n: Int): Int =
    if (route.everywhere) first % tasks
    else if (tasks == 1 || route.partitionBy.isEmpty) 0
    else {
      java.util.Arrays.fill(targets, 0, n, Words.Seed)
      route.partitionBy.foreach { c =>
        val t = wordTypes(input)(c)
        val w = words(columns(c))
        val nullRows = nulls(columns(c))
        var i = 0
        if (nullRows == null && (t eq LongWord)) {
          while (i < n) {
            targets(i) = LongWord.hash(w(i), targets(i), null)
            i += 1
          }
        } else {
          while (i < n) {
            if (nullRows == null || !nullRows(i)) targets(i) = t.hash(w(i), targets(i), strings)
            i += 1
          }
        }
      }
      var i = 0
      while (i < n) {
        targets(i) = Math.floorMod(targets(i), tasks)
        i += 1
      }
      -1
    }

  private def dropNullKeys(columns: Array[Int], n: Int): Unit = columns.foreach { c =>
    val nullRows = nulls(c)
    if (nullRows != null) (0 until n).foreach(i => if (nullRows(i)) targets(i) = -1)
  }

  /** Lists the rows of each target one after another, so that copying a column needs no test for each cell. */
  private def select(n: Int): Unit = {
    java.util.Arrays.fill(counts, 0)
    var i = 0
    while (i < n) {
      val t = targets(i)
      if (t >= 0) {
        selected(t * BatchRows + counts(t)) = i
        counts(t) += 1
      }
      i += 1
    }
  }

  private def append(block: OpenBlock, columns: Array[Int], n: Int): Unit = {
    columns.indices.foreach { c =>
      System.arraycopy(words(columns(c)), 0, block.columns(c), block.rows, n)
    }
    block.rows += n
  }

  /** Copies the rows in `selected` from `from` on. */
  private def gather(block: OpenBlock, columns: Array[Int], from: Int, n: Int): Unit = {
    columns.indices.foreach { c =>
      val in = words(columns(c))
      val nullRows = nulls(columns(c))
      Loader.copy(in, selected, from, n, block.columns(c), block.rows)
      if (nullRows != null) (0 until n).foreach(i => if (nullRows(selected(from + i))) block.setNull(c, block.rows + i))
    }
    block.rows += n
  }
}

object Loader {
  val BatchRows = 4096

  /** Columns of an open block then have less than half a region of a heap of 2 GB: G1 allocates larger arrays apart. */
  private val BlockRows = (1 << 16) - 16

  private def copy(in: Array[Long], rows: Array[Int], from: Int, n: Int, out: Array[Long], at: Int): Unit = {
    var i = 0
    while (i < n) {
      out(at + i) = in(rows(from + i))
      i += 1
    }
  }
}
