package org.apache.spark.sql.paralagg.exec

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.{ColumnarArray, ColumnarBatch, ColumnVector}

/**
 * Reads rows or column batches of inputs and packs their words into one block a route and target task (design section 5,
 * "Loading"). Rows are not shuffled one by one: a few large blocks are what leaves here.
 *
 * @param first the target that gets the first row of an `everywhere` route; such rows are dealt out in turn, and
 *              gathered by every executor later
 */
final class Loader(routes: Routes, inputTypes: Map[Int, Array[DataType]], tasks: Int, first: Int) {
  import Loader.BatchRows

  val strings = new LocalDictionary
  val blocks: Array[Array[Block]] = Array.fill(tasks)(routes.all.map(r => new Block(r.id, r.columns.length)))

  private val wordTypes = inputTypes.map { case (input, types) => input -> types.map(Words.of) }
  private val targets = new Array[Int](BatchRows)
  private var words: Array[Array[Long]] = Array.empty
  private var nulls: Array[Array[Boolean]] = Array.empty // null where the batch's column has none

  def rows(input: Int, rows: Iterator[InternalRow], check: () => Unit): Unit = {
    val types = wordTypes(input)
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
        scatter(input, n)
        check()
        n = 0
      }
    }
    scatter(input, n)
  }

  /** As `rows`; column `c` of the input is column `ordinals(c)` of the batches. */
  def batches(input: Int, batches: Iterator[ColumnarBatch], ordinals: Array[Int], check: () => Unit): Unit = {
    val types = wordTypes(input)
    prepare(types.length)
    batches.foreach { batch =>
      var from = 0
      while (from < batch.numRows()) {
        val n = math.min(BatchRows, batch.numRows() - from)
        types.indices.foreach(c => column(types(c), batch.column(ordinals(c)), from, n, c))
        scatter(input, n)
        from += n
      }
      check()
    }
  }

  private def column(t: WordType, vector: ColumnVector, from: Int, n: Int, c: Int): Unit = {
    val out = words(c)
    if (vector.hasNull) {
      var i = 0
      while (i < n) {
        if (vector.isNullAt(from + i)) markNull(c, i)
        i += 1
      }
    }
    val holes = nulls(c)
    var i = 0
    t match {
      case LongWord if holes == null =>
        while (i < n) {
          out(i) = vector.getLong(from + i)
          i += 1
        }
      case IntWord("int", _) if holes == null =>
        while (i < n) {
          out(i) = vector.getInt(from + i)
          i += 1
        }
      case DoubleWord if holes == null =>
        while (i < n) {
          out(i) = DoubleWord.word(vector.getDouble(from + i))
          i += 1
        }
      case _ =>
        val cells = new ColumnarArray(vector, from, n)
        while (i < n) {
          if (holes == null || !holes(i)) out(i) = t.read(cells, i, strings)
          i += 1
        }
    }
  }

  private def prepare(columns: Int): Unit = {
    if (words.length < columns) words = Array.fill(columns)(new Array[Long](BatchRows))
    nulls = new Array[Array[Boolean]](columns)
  }

  private def markNull(column: Int, row: Int): Unit = {
    if (nulls(column) == null) nulls(column) = new Array[Boolean](BatchRows)
    nulls(column)(row) = true
    words(column)(row) = 0
  }

  /** Sends the `n` rows that stand in `words` on every route of the input. */
  private def scatter(input: Int, n: Int): Unit = if (n > 0) {
    routes.ofInput(input).foreach { route =>
      val whole = assign(input, route, n)
      if (whole >= 0 && route.columns.forall(nulls(_) == null)) append(blocks(whole)(route.id), route, n)
      else {
        if (whole >= 0) java.util.Arrays.fill(targets, 0, n, whole)
        dropNullKeys(route, n)
        route.columns.indices.foreach(c => spread(route, c, n))
        var i = 0
        while (i < n) {
          if (targets(i) >= 0) blocks(targets(i))(route.id).rows += 1
          i += 1
        }
      }
    }
    java.util.Arrays.fill(nulls.asInstanceOf[Array[AnyRef]], null)
  }

  /** Fills `targets`, unless all rows have the same: then that one is returned, else -1. */
  private def assign(input: Int, route: Route, n: Int): Int =
    if (route.everywhere) first % tasks
    else if (tasks == 1 || route.partitionBy.isEmpty) 0
    else {
      java.util.Arrays.fill(targets, 0, n, Words.Seed)
      route.partitionBy.foreach { c =>
        val t = wordTypes(input)(c)
        val w = words(c)
        val holes = nulls(c)
        var i = 0
        if (holes == null && (t eq LongWord)) {
          while (i < n) {
            targets(i) = LongWord.hash(w(i), targets(i), null)
            i += 1
          }
        } else {
          val dictionary = strings.strings
          while (i < n) {
            if (holes == null || !holes(i)) targets(i) = t.hash(w(i), targets(i), dictionary)
            i += 1
          }
        }
      }
      var i = 0
      while (i < n) {
        targets(i) = Words.owner(targets(i), tasks)
        i += 1
      }
      -1
    }

  private def dropNullKeys(route: Route, n: Int): Unit = route.notNull.foreach { c =>
    val holes = nulls(c)
    if (holes != null) (0 until n).foreach(i => if (holes(i)) targets(i) = -1)
  }

  private def append(block: Block, route: Route, n: Int): Unit = {
    route.columns.indices.foreach { c =>
      val b = block.words(c)
      b.reserve(n)
      System.arraycopy(words(route.columns(c)), 0, b.array, b.size, n)
      b.size += n
    }
    block.rows += n
  }

  private def spread(route: Route, c: Int, n: Int): Unit = {
    val w = words(route.columns(c))
    val holes = nulls(route.columns(c))
    var t = 0
    while (t < tasks) {
      blocks(t)(route.id).words(c).reserve(n)
      t += 1
    }
    val buffers = blocks.map(_(route.id).words(c))
    var i = 0
    while (i < n) {
      val target = targets(i)
      if (target >= 0) {
        val b = buffers(target)
        if (holes != null && holes(i)) blocks(target)(route.id).setNull(c, b.size)
        b.array(b.size) = w(i)
        b.size += 1
      }
      i += 1
    }
  }
}

object Loader {
  val BatchRows = 4096
}
