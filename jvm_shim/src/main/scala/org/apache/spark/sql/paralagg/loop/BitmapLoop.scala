package org.apache.spark.sql.paralagg.loop

import java.util.Arrays

import org.apache.spark.sql.paralagg.gang.{Gang, MemoryAccount}
import org.apache.spark.sql.paralagg.load.Block
import org.apache.spark.sql.paralagg.state.{BitmapEdges, KeyMap, LongKeyMap, StaticIndex}

/**
 * The evaluation of a set relation (x, y) whose rules carry x and move y along edges. It processes 64·W values of x at
 * once, with a bitmap for each y of the x that reach it. A delta bitmap joined with an edge is `new = delta(y) &
 * ~full(z)`: 64·W tuples an operation, no hashing, and no exchange, since x stays on its task (docs/design.md,
 * "Evaluation forms").
 *
 * The first block decides W: wide blocks for dense results, one word for sparse ones. A task begins no block once it has
 * `endsAt` pairs.
 */
final class BitmapLoop(
    moving: Int, edges: BitmapEdges, base: Array[Block], gang: Gang, memory: MemoryAccount, endsAt: Option[Int]) {
  import BitmapLoop._

  private val carried = 1 - moving
  private val vertices = edges.vertices.asInstanceOf[LongKeyMap]
  private val size = vertices.size

  /** Base rows by x: ids of y, `starts(x)` until `starts(x + 1)` in `firsts`. `isolated`: rows without an edge at y. */
  private val sources = new LongKeyMap
  private val isolated = KeyMap(2)
  private val (starts, firsts) = group()

  private var width = 1
  private var full = new Array[Long](size)
  private var delta = new Array[Long](size)
  private val queued = new Array[Boolean](size)
  private var current = new Array[Int](size)
  private var next = new Array[Int](size)
  private val touched = new Array[Int](size)
  private val isTouched = new Array[Boolean](size)
  private var touchedSize = 0
  var iterations = 0
  var pairs: Long = 0

  /** Evaluates all blocks; passes the bitmaps of each block to `emit` before the next one overwrites them. */
  def run(emit: BitmapBlock => Unit): Unit = {
    var x = 0
    while (x < sources.size && endsAt.forall(pairs < _)) {
      val until = math.min(sources.size, x + 64 * width)
      evaluate(x, until)
      val block = collect(x, until)
      pairs += block.pairs
      emit(block)
      if (x == 0) chooseWidth(block)
      x = until
      memory.hold(edges.bytes / gang.localTasks + 8L * (full.length + delta.length) + 12L * size,
        "the bitmaps of the recursive relation")
    }
    val rows = isolatedRows()
    pairs += rows.pairs
    if (rows.pairs > 0) emit(rows)
    vote()
  }

  private def evaluate(from: Int, until: Int): Unit = {
    var n = 0
    def arrive(y: Int): Unit = {
      if (!isTouched(y)) {
        isTouched(y) = true
        touched(touchedSize) = y
        touchedSize += 1
      }
      if (!queued(y)) {
        queued(y) = true
        current(n) = y
        n += 1
      }
    }
    var x = from
    while (x < until) {
      var i = starts(x)
      while (i < starts(x + 1)) {
        val at = firsts(i) * width + ((x - from) >> 6)
        full(at) |= 1L << (x - from)
        delta(at) |= 1L << (x - from)
        arrive(firsts(i))
        i += 1
      }
      x += 1
    }
    var rounds = 0
    while (n > 0) {
      n = pass(n)
      rounds += 1
      gang.check()
    }
    iterations = math.max(iterations, rounds)
  }

  /** Follows the edges of the `n` changed y; returns the number of y that this changes. */
  private def pass(n: Int): Int = {
    val w = width
    val (offsets, targets) = (edges.offsets, edges.targets)
    val (f, d) = (full, delta)
    val bits = new Array[Long](w)
    var m = 0
    var i = 0
    while (i < n) {
      val y = current(i)
      queued(y) = false
      System.arraycopy(d, y * w, bits, 0, w)
      Arrays.fill(d, y * w, y * w + w, 0L)
      var e = offsets(y)
      val end = offsets(y + 1)
      while (e < end) {
        val z = targets(e)
        var any = 0L
        var j = 0
        val at = z * w
        while (j < w) {
          val fresh = bits(j) & ~f(at + j)
          any |= fresh
          f(at + j) |= fresh
          d(at + j) |= fresh
          j += 1
        }
        if (any != 0) {
          if (!isTouched(z)) {
            isTouched(z) = true
            touched(touchedSize) = z
            touchedSize += 1
          }
          if (!queued(z)) {
            queued(z) = true
            next(m) = z
            m += 1
          }
        }
        e += 1
      }
      if ((i & 1023) == 1023) gang.check()
      i += 1
    }
    val spare = current
    current = next
    next = spare
    m
  }

  private def collect(from: Int, until: Int): BitmapBlock = {
    val xs = Arrays.copyOfRange(sources.words, from, until)
    val ys = new Array[Long](touchedSize)
    val bits = new Array[Long](touchedSize * width)
    var i = 0
    while (i < touchedSize) {
      val y = touched(i)
      ys(i) = vertices.words(y)
      System.arraycopy(full, y * width, bits, i * width, width)
      Arrays.fill(full, y * width, (y + 1) * width, 0L)
      isTouched(y) = false
      i += 1
    }
    touchedSize = 0
    BitmapBlock(xs, ys, width, bits)
  }

  /** Sets W by the density of the first block and the memory of the bitmaps (docs/design.md, "Bitmap width"). */
  private def chooseWidth(first: BitmapBlock): Unit = {
    val density = first.pairs.toDouble / math.max(1, first.ys.length * 64)
    val desired = if (density > 0.1) 16 else if (density > 0.03) 4 else 1
    val fits = math.max(1L, MaxWords / math.max(1, size)).toInt
    width = math.min(math.min(desired, fits), math.max(1, (sources.size + 63) / 64))
    if (width > 1) {
      full = new Array[Long](size * width)
      delta = new Array[Long](size * width)
    }
  }

  private def group(): (Array[Int], Array[Int]) = {
    StaticIndex.expect(sources, base.iterator.map((_, carried)))
    val n = base.map(_.rows).sum
    val xs = new Array[Int](n)
    val ys = new Array[Int](n)
    val pair = new Array[Long](2)
    var m = 0
    base.foreach { b =>
      val (ofCarried, ofMoving) = (b.column(carried), b.column(moving))
      var i = 0
      while (i < b.rows) {
        val y = vertices.findWord(ofMoving(i))
        if (y >= 0) {
          xs(m) = sources.addWord(ofCarried(i))
          ys(m) = y
          m += 1
        } else {
          pair(carried) = ofCarried(i)
          pair(moving) = ofMoving(i)
          isolated.add(pair)
        }
        i += 1
      }
    }
    val placement = StaticIndex.place(xs.take(m), sources.size, null)
    (placement.offsets, placement.order(ys.take(m)))
  }

  /** Returns the base rows without an edge at y, as a block of plain pairs. */
  private def isolatedRows(): BitmapBlock = {
    val n = isolated.size
    def words(column: Int) = Array.tabulate(n)(isolated.word(_, column))
    BitmapBlock(words(carried), words(moving), 0, Array.emptyLongArray)
  }

  private def vote(): Unit = {
    val sums = gang.allreduce(Array(pairs.toDouble, iterations.toDouble), maxima = 1)
    pairs = sums(0).toLong
    iterations = sums(1).toInt
  }
}

object BitmapLoop {

  /** 256 MiB for a bitmap array. */
  private val MaxWords = 1L << 25
}

/**
 * The pairs (x, y) of one block: bit b of word w of `bits(i * width …)` is set if (`xs(64 w + b)`, `ys(i)`) is a row.
 * With width 0 the pairs are (`xs(i)`, `ys(i)`).
 */
case class BitmapBlock(xs: Array[Long], ys: Array[Long], width: Int, bits: Array[Long]) {
  lazy val pairs: Long =
    if (width == 0) xs.length else Arrays.stream(bits).map(java.lang.Long.bitCount(_).toLong).sum()

  /** Returns the pairs of those x for which `isKept`. */
  def only(isKept: Array[Boolean]): BitmapBlock =
    if (width == 0) {
      def select(words: Array[Long]) = words.zip(isKept).collect { case (word, true) => word }
      BitmapBlock(select(xs), select(ys), 0, bits)
    } else {
      val mask = new Array[Long](width)
      isKept.indices.foreach(x => if (isKept(x)) mask(x >> 6) |= 1L << x)
      BitmapBlock(xs, ys, width, bits.indices.map(i => bits(i) & mask(i % width)).toArray)
    }
}
