package org.apache.spark.sql.paralagg.loop

import java.util.Arrays

import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.gang.{Gang, MemoryAccount}
import org.apache.spark.sql.paralagg.load.Block
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.{BitmapEdges, KeyMap, LongKeyMap, StaticIndex}

/**
 * A set relation (x, y) whose rules carry x and move y along edges, for 64·W values of x at once: for every y a bitmap of the
 * x that reach it. A delta bitmap joined with an edge is `new = delta(y) & ~full(z)`: 64·W tuples an operation, no hashing,
 * and no exchange, since x stays where it is (docs/design.md, "Evaluation forms").
 *
 * W follows what the first block shows: wide blocks where results are dense, one word where they are sparse.
 */
final class BitmapLoop(stratum: StratumSpec, edges: BitmapEdges, base: Array[Block], gang: Gang,
    memory: MemoryAccount) {
  import BitmapLoop._

  private val moving = stratum.bitmap.get.moving
  private val carried = 1 - moving
  private val vertices = edges.vertices.asInstanceOf[LongKeyMap]
  private val size = vertices.size
  private val limit = stratum.maxIterations

  /** Base rows by x: `starts(x)` until `starts(x + 1)` in `firsts`, ids of y. Rows whose y no edge mentions are just rows. */
  private val sources = new LongKeyMap
  private val loose = KeyMap(2)
  private val (starts, firsts) = group()

  private var width = 1
  private var full = new Array[Long](size)
  private var delta = new Array[Long](size)
  private var arriving = if (limit.isEmpty) delta else new Array[Long](size)
  private val queued = new Array[Boolean](size)
  private var current = new Array[Int](size)
  private var next = new Array[Int](size)
  private val touched = new Array[Int](size)
  private val isTouched = new Array[Boolean](size)
  private var touchedSize = 0
  private var unfinished = 0L
  var iterations = 0
  var pairs: Long = 0

  /** Evaluates all blocks; each block's bitmaps go to `emit` before the next one overwrites them. */
  def run(emit: BitmapBlock => Unit): Unit = {
    var x = 0
    while (x < sources.size) {
      val until = math.min(sources.size, x + 64 * width)
      evaluate(x, until)
      val found = collect(x, until)
      pairs += found.pairs
      emit(found)
      if (x == 0) choose(found)
      x = until
      memory.hold(edges.bytes + 8L * (full.length + delta.length) + 12L * size, "the bitmaps of the recursive relation")
    }
    val rows = looseRows()
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
    while (n > 0 && limit.forall(rounds < _)) {
      n = pass(n)
      rounds += 1
      gang.check()
      if (limit.isDefined) nextRound(n)
    }
    unfinished += n
    iterations = math.max(iterations, rounds)
    // What a limit cut off must not leak into the next block.
    (0 until n).foreach { i =>
      queued(current(i)) = false
      Arrays.fill(delta, current(i) * width, (current(i) + 1) * width, 0L)
    }
  }

  /** Follows all edges of what changed; returns how many y changed by it. */
  private def pass(n: Int): Int = {
    val w = width
    val (offsets, targets) = (edges.offsets, edges.targets)
    val (f, d, a) = (full, delta, arriving)
    val inPlace = limit.isEmpty
    val bits = new Array[Long](w)
    var m = 0
    var i = 0
    while (i < n) {
      val y = current(i)
      if (inPlace) queued(y) = false
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
          a(at + j) |= fresh
          j += 1
        }
        if (any != 0) {
          if (!isTouched(z)) {
            isTouched(z) = true
            touched(touchedSize) = z
            touchedSize += 1
          }
          if (!queued(z) || !inPlace && !isNext(z)) {
            queued(z) = true
            if (!inPlace) markNext(z)
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

  private lazy val nextMarks = new Array[Boolean](size)
  private def isNext(z: Int): Boolean = nextMarks(z)
  private def markNext(z: Int): Unit = nextMarks(z) = true

  /** With a limit, what arrived in a round is the delta of the next one. */
  private def nextRound(n: Int): Unit = {
    val spare = delta
    delta = arriving
    arriving = spare
    (0 until n).foreach(i => nextMarks(current(i)) = false)
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
      queued(y) = false
      i += 1
    }
    touchedSize = 0
    BitmapBlock(xs, ys, width, bits)
  }

  /** docs/design.md, "Bitmap width": 64·W at once where much of a bitmap is set, and the working set still fits the cache or memory. */
  private def choose(first: BitmapBlock): Unit = {
    val density = first.pairs.toDouble / math.max(1, first.ys.length * 64)
    val wanted = if (density > 0.1) 16 else if (density > 0.03) 4 else 1
    val fits = math.max(1L, MostWords / math.max(1, size)).toInt
    width = math.min(math.min(wanted, fits), math.max(1, (sources.size + 63) / 64))
    if (width > 1) {
      full = new Array[Long](size * width)
      delta = new Array[Long](size * width)
      arriving = if (limit.isEmpty) delta else new Array[Long](size * width)
    }
  }

  private def group(): (Array[Int], Array[Int]) = {
    StaticIndex.expect(sources, base.toSeq.map(b => (b.words(carried).array, b.rows)))
    val n = base.map(_.rows).sum
    val xs = new Array[Int](n)
    val ys = new Array[Int](n)
    val pair = new Array[Long](2)
    var m = 0
    base.foreach { b =>
      var i = 0
      while (i < b.rows) {
        val y = vertices.findWord(b.words(moving).array(i))
        if (y >= 0) {
          xs(m) = sources.addWord(b.words(carried).array(i))
          ys(m) = y
          m += 1
        } else {
          pair(carried) = b.words(carried).array(i)
          pair(moving) = b.words(moving).array(i)
          loose.add(pair)
        }
        i += 1
      }
    }
    val starts = new Array[Int](sources.size + 1)
    (0 until m).foreach(i => starts(xs(i) + 1) += 1)
    (0 until sources.size).foreach(x => starts(x + 1) += starts(x))
    val at = starts.clone()
    val firsts = new Array[Int](m)
    (0 until m).foreach { i =>
      firsts(at(xs(i))) = ys(i)
      at(xs(i)) += 1
    }
    (starts, firsts)
  }

  /** Rows that no edge leads on from, as bitmaps of one bit each. */
  private def looseRows(): BitmapBlock = {
    val n = loose.size
    BitmapBlock(
      Array.tabulate(n)(loose.word(_, carried)), Array.tabulate(n)(loose.word(_, moving)), 0, Array.emptyLongArray)
  }

  private def vote(): Unit = {
    val mine = new Array[Double](gang.tasks)
    mine(gang.part) = iterations
    val sums = gang.meet(mine ++ Array(unfinished.toDouble, pairs.toDouble))
    iterations = sums.take(gang.tasks).max.toInt
    pairs = sums(gang.tasks + 1).toLong
    if (sums(gang.tasks) > 0 && stratum.onLimitError) {
      throw new ParalaggException(
        ErrorCodes.LimitReached,
        s"${stratum.name}: after ${limit.get} iterations the last one still changed rows.",
        "raise max_iterations, or say on_limit='return' if R_n itself is what you want.")
    }
  }
}

object BitmapLoop {

  /** 256 MiB for a bitmap array. */
  private val MostWords = 1L << 25
}

/**
 * Pairs (x, y) of one block: bit b of word w of `bits(i * width …)` says that (`xs(64 w + b)`, `ys(i)`) is there. Width 0: just
 * the pairs (`xs(i)`, `ys(i)`).
 */
case class BitmapBlock(xs: Array[Long], ys: Array[Long], width: Int, bits: Array[Long]) {
  lazy val pairs: Long =
    if (width == 0) xs.length
    else {
      var n = 0L
      var i = 0
      while (i < bits.length) {
        n += java.lang.Long.bitCount(bits(i))
        i += 1
      }
      n
    }

  /** The pairs of those x that `wanted` says. */
  def only(wanted: Array[Boolean]): BitmapBlock =
    if (width == 0) {
      def pick(words: Array[Long]) = words.zip(wanted).collect { case (word, true) => word }
      BitmapBlock(pick(xs), pick(ys), 0, bits)
    } else {
      val mask = new Array[Long](width)
      wanted.indices.foreach(x => if (wanted(x)) mask(x >> 6) |= 1L << x)
      BitmapBlock(xs, ys, width, bits.indices.map(i => bits(i) & mask(i % width)).toArray)
    }
}
