package org.apache.spark.sql.paralagg.loop

import java.util.Arrays

import org.apache.spark.sql.paralagg.gang.{Gang, MemoryAccount, WordsCodec}
import org.apache.spark.sql.paralagg.load.Block
import org.apache.spark.sql.paralagg.plan.{BitRowsSpec, FlowSpec}
import org.apache.spark.sql.paralagg.state.{BitRowsEdges, KeyMap, LongKeyMap}

/**
 * The evaluation of sets of pairs in rows of bits: a row for each vertex and relation, with a bit for each value of the
 * carried key. A task has the bits of its own values and all edges. Tasks exchange the edges that their pairs have
 * added, once each has followed all that it has (docs/architecture.md, "Evaluation").
 *
 * Row `vertex * relations + r` gets a slot with its first bit: a place in `table` for each block of 512 bits, with the
 * number of the block, or -1 while it has no bit.
 */
final class BitRowsLoop private (
    form: BitRowsSpec,
    known: BitRowsEdges,
    bases: Array[Array[Block]],
    values: LongKeyMap,
    gang: Gang,
    memory: MemoryAccount) {
  import BitRowsLoop._

  private val relations = bases.length
  private val vertices = known.vertices
  private val blocks = BitRowsLoop.blocks(values.size) // of a row
  private val vertexOf = Array.tabulate(values.size)(v => vertices.findWord(values.words(v)))

  private val knownBytes = known.bytes / gang.localTasks
  memory.hold(17L * vertices.size * relations + knownBytes, "the rows of bits of the recursive relations")
  private val slots = Array.fill(vertices.size * relations)(-1)
  private var rowOf = new Array[Int](16)
  private var used = 0
  private var table = Array.fill(rowOf.length * blocks)(-1)
  private var full = new Array[Long](16 * BlockWords)
  private var delta = new Array[Long](full.length)
  private var usedBlocks = 0

  /** The bits that a row sends, by block, and the numbers of the blocks with bits. */
  private val words = new Array[Long](blocks * BlockWords)
  private val active = new Array[Int](blocks)
  private var queue = new Array[Int](slots.length)
  private var next = new Array[Int](slots.length)
  private var queued = 0
  private val isQueued = new Array[Boolean](slots.length)

  /** Added edges as words, in lists by their origin's row. */
  private var edges = new Array[Long](16)
  private var links = new Array[Int](16)
  private val first = Array.fill(slots.length)(-1)
  private var added = 0
  private var edgeSet = Array.fill(64)(-1L)

  /** The edges that new pairs of one row make. */
  private var foundEdges = new Array[Long](1024)
  private var found = 0

  private val ends = new Array[Int](3)
  var iterations = 0
  var pairs = 0L

  /** Evaluates all relations. */
  def run(): Unit = {
    start()
    var isActive = true
    while (isActive) {
      val before = added
      follow()
      isActive = gang.tasks > 1 && {
        val found = gang.allgather(Arrays.copyOfRange(edges, before, added), WordsCodec)
        found.foreach(edges => add(edges, edges.length))
        found.exists(_.nonEmpty)
      }
    }
    val sums = gang.allreduce(
      Array(Arrays.stream(full).map(java.lang.Long.bitCount(_).toLong).sum().toDouble, iterations.toDouble), maxima = 1)
    pairs = sums(0).toLong
    iterations = sums(1).toInt
  }

  private def start(): Unit = for (r <- bases.indices; b <- bases(r)) {
    val keys = b.column(1 - form.carried(r))
    val carried = b.column(form.carried(r))
    var i = 0
    while (i < b.rows) {
      val row = vertices.findWord(keys(i)) * relations + r
      val value = values.findWord(carried(i))
      val at = blockAt(slotOf(row), value / BlockBits) * BlockWords + (value >> 6) % BlockWords
      full(at) |= 1L << value
      delta(at) |= 1L << value
      enqueue(row)
      i += 1
    }
  }

  private def enqueue(row: Int): Unit = if (!isQueued(row)) {
    isQueued(row) = true
    next(queued) = row
    queued += 1
  }

  private def slotOf(row: Int): Int = {
    if (slots(row) < 0) {
      if (used == rowOf.length) {
        hold(2 * used, full.length)
        rowOf = Arrays.copyOf(rowOf, 2 * used)
        table = Arrays.copyOf(table, rowOf.length * blocks)
        Arrays.fill(table, used * blocks, table.length, -1)
      }
      rowOf(used) = row
      slots(row) = used
      used += 1
    }
    slots(row)
  }

  /** Returns the number of a block of a row, which it may get now. */
  private def blockAt(slot: Int, b: Int): Int = {
    val at = slot * blocks + b
    if (table(at) < 0) {
      if ((usedBlocks + 1L) * BlockWords > full.length) {
        hold(rowOf.length, 2L * full.length)
        val length = Math.multiplyExact(2, full.length) // 16 GiB
        full = Arrays.copyOf(full, length)
        delta = Arrays.copyOf(delta, length)
      }
      table(at) = usedBlocks
      usedBlocks += 1
    }
    table(at)
  }

  private def hold(rows: Int, words: Long): Unit = memory.hold(
    rows * (4L * blocks + 4) + 16L * words + 17L * slots.length + 12L * edges.length + 8L * edgeSet.length + knownBytes,
    "the rows of bits of the recursive relations")

  /** Copies the bits of a row in `from` to `words`. Returns the number of its `active` blocks. */
  private def collect(slot: Int, from: Array[Long]): Int = {
    var n = 0
    var b = 0
    while (b < blocks) {
      val block = table(slot * blocks + b)
      if (block >= 0) {
        var any = 0L
        var j = 0
        while (j < BlockWords) {
          val word = from(block * BlockWords + j)
          words(b * BlockWords + j) = word
          any |= word
          j += 1
        }
        if (any != 0) {
          active(n) = b
          n += 1
        }
      }
      b += 1
    }
    n
  }

  /** Adds the bits of the first `n` active blocks to a row. */
  private def send(n: Int, row: Int): Unit = {
    val slot = slotOf(row)
    var any = 0L
    var i = 0
    while (i < n) {
      val from = active(i) * BlockWords
      val to = blockAt(slot, active(i)) * BlockWords
      val (f, d) = (full, delta)
      var j = 0
      while (j < BlockWords) {
        val fresh = words(from + j) & ~f(to + j)
        any |= fresh
        f(to + j) |= fresh
        d(to + j) |= fresh
        j += 1
      }
      i += 1
    }
    if (any != 0) enqueue(row)
  }

  /** Adds edges; along each that is new, sends what its origin has. */
  private def add(found: Array[Long], n: Int): Unit = {
    var i = 0
    while (i < n) {
      add(found(i))
      i += 1
    }
  }

  private def add(edge: Long): Unit = {
    if (2 * (added + 1) > edgeSet.length) rehash()
    if (insert(edge)) {
      if (added == edges.length) {
        edges = Arrays.copyOf(edges, 2 * added)
        links = Arrays.copyOf(links, 2 * added)
      }
      val flow = form.flows((edge >>> FlowShift).toInt)
      val source = ((edge >>> VertexBits) & VertexMask).toInt * relations + flow.source
      edges(added) = edge
      links(added) = first(source)
      first(source) = added
      added += 1
      if (slots(source) >= 0) send(collect(slots(source), full), head(edge))
    }
  }

  private def head(edge: Long): Int =
    (edge & VertexMask).toInt * relations + form.flows((edge >>> FlowShift).toInt).head

  private def insert(edge: Long): Boolean = {
    val mask = edgeSet.length - 1
    var s = KeyMap.mix(edge).toInt & mask
    while (edgeSet(s) != -1 && edgeSet(s) != edge) s = (s + 1) & mask
    val isNew = edgeSet(s) == -1
    edgeSet(s) = edge
    isNew
  }

  private def rehash(): Unit = {
    val old = edgeSet
    edgeSet = Array.fill(2 * old.length)(-1L)
    old.foreach(e => if (e != -1) insert(e))
    hold(rowOf.length, full.length)
  }

  /** Follows edges until nothing changes. */
  private def follow(): Unit = while (queued > 0) {
    iterations += 1
    val n = queued
    val current = next
    next = queue
    queue = current
    queued = 0
    var i = 0
    while (i < n) {
      val row = current(i)
      isQueued(row) = false
      val sent = collect(slots(row), delta)
      forget(slots(row), sent)
      var link = first(row)
      while (link >= 0) {
        send(sent, head(edges(link)))
        link = links(link)
      }
      found = 0
      form.flows.indices.foreach(f => apply(f, row, sent))
      add(foundEdges, found) // last: it overwrites `words`
      if ((i & 63) == 63) gang.check()
      i += 1
    }
  }

  /** Clears the first `n` active blocks of a row's delta. */
  private def forget(slot: Int, n: Int): Unit = {
    var i = 0
    while (i < n) {
      val at = table(slot * blocks + active(i)) * BlockWords
      Arrays.fill(delta, at, at + BlockWords, 0L)
      i += 1
    }
  }

  /** Applies a flow to the new bits of a row, those of the first `n` active blocks. */
  private def apply(number: Int, row: Int, n: Int): Unit = {
    val flow = form.flows(number)
    val (vertex, relation) = (row / relations, row % relations)
    if (flow.reads == relation) derive(number, vertex, n)
    else if (flow.reads < 0 && flow.source == relation) {
      if (flow.index < 0) send(n, vertex * relations + flow.head)
      else {
        val (offsets, targets) = (known.offsets(number), known.targets(number))
        var e = offsets(vertex)
        while (e < offsets(vertex + 1)) {
          send(n, targets(e) * relations + flow.head)
          e += 1
        }
      }
    }
  }

  /** Finds the edges that new pairs of a row make. */
  private def derive(number: Int, vertex: Int, n: Int): Unit = {
    val flow = form.flows(number)
    val (offsets, targets) = (known.offsets(number), known.targets(number))
    val isPossible = flow.index < 0 || flow.key != FlowSpec.Row || offsets(vertex) < offsets(vertex + 1)
    ends(FlowSpec.Row) = vertex
    var k = 0
    while (isPossible && k < n * BlockWords) {
      val j = active(k / BlockWords) * BlockWords + k % BlockWords
      var left = words(j)
      while (left != 0) {
        ends(FlowSpec.Carried) = vertexOf(64 * j + java.lang.Long.numberOfTrailingZeros(left))
        left &= left - 1
        if (flow.index < 0) find(edge(number, flow))
        else {
          var e = offsets(ends(flow.key))
          val end = offsets(ends(flow.key) + 1)
          while (e < end) {
            ends(FlowSpec.Found) = targets(e)
            find(edge(number, flow))
            e += 1
          }
        }
      }
      k += 1
    }
  }

  private def find(edge: Long): Unit = {
    if (found == foundEdges.length) foundEdges = Arrays.copyOf(foundEdges, 2 * found)
    foundEdges(found) = edge
    found += 1
  }

  private def edge(number: Int, flow: FlowSpec): Long =
    number.toLong << FlowShift | ends(flow.origin).toLong << VertexBits | ends(flow.target)

  /** Passes the rows of a relation to `emit`, as blocks of bits. */
  def rows(output: Int)(emit: BitmapBlock => Unit): Unit = {
    val xs = Arrays.copyOf(values.words, values.size)
    val width = blocks * BlockWords
    val found = (0 until used).filter(s => rowOf(s) % relations == output)
    found.grouped(math.max(1, EmittedWords / width)).foreach { slots =>
      val bits = new Array[Long](slots.length * width)
      for (i <- slots.indices; b <- 0 until blocks; block = table(slots(i) * blocks + b) if block >= 0)
        System.arraycopy(full, block * BlockWords, bits, i * width + b * BlockWords, BlockWords)
      emit(BitmapBlock(xs, slots.map(s => vertices.words(rowOf(s) / relations)).toArray, width, bits))
    }
  }
}

object BitRowsLoop {

  /** An edge as a word: the flow, the origin, the target. */
  private val FlowShift = 56
  private val VertexBits = 28
  private val VertexMask = (1L << VertexBits) - 1

  /** The words of a block: a cache line. Of a row, only blocks with bits are stored. */
  private val BlockWords = 8
  private val BlockBits = 64 * BlockWords

  /** 8 MiB for the bits of a block of the result. */
  private val EmittedWords = 1 << 20

  /** 1 GiB for the numbers of blocks, if each row is used. */
  private val MaxPlaces = 1L << 28

  private def blocks(values: Int): Int = math.max(1, (values + BlockBits - 1) / BlockBits)

  /** Returns the loop; None if the rows of a task are too many. Collective. */
  def load(
      form: BitRowsSpec,
      known: BitRowsEdges,
      bases: Array[Array[Block]],
      gang: Gang,
      memory: MemoryAccount): Option[BitRowsLoop] = {
    val values = new LongKeyMap
    for (r <- bases.indices; b <- bases(r)) {
      val carried = b.column(form.carried(r))
      (0 until b.rows).foreach(i => values.addWord(carried(i)))
    }
    val places = known.vertices.size.toLong * bases.length * blocks(values.size)
    val isLarge = places > MaxPlaces || known.vertices.size >= VertexMask
    if (gang.allreduce(Array(if (isLarge) 1.0 else 0.0))(0) > 0) None
    else Some(new BitRowsLoop(form, known, bases, values, gang, memory))
  }
}
