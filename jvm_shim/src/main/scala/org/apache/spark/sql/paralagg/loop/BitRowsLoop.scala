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
 * Row `vertex * relations + r` gets its words, `slots(row) * width` and on, with its first bit.
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
  private val width = math.max(1, (values.size + 63) / 64)
  private val vertexOf = Array.tabulate(values.size)(v => vertices.findWord(values.words(v)))

  private val knownBytes = known.bytes / gang.localTasks
  memory.hold(17L * vertices.size * relations + knownBytes, "the rows of bits of the recursive relations")
  private val slots = Array.fill(vertices.size * relations)(-1)
  private var rowOf = new Array[Int](16)
  private var used = 0
  private var full = new Array[Long](rowOf.length * width)
  private var delta = new Array[Long](rowOf.length * width)
  private var queue = new Array[Int](slots.length)
  private var next = new Array[Int](slots.length)
  private var queued = 0
  private val isQueued = new Array[Boolean](slots.length)

  /** Added edges as words, in lists by their origin's row. */
  private var edges = new Array[Long](16)
  private var links = new Array[Int](16)
  private val first = Array.fill(slots.length)(-1)
  private var added = 0
  private var table = Array.fill(64)(-1L)

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
        found.foreach(_.foreach(add))
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
      val at = slotOf(row) * width + (value >> 6)
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
        val capacity = 2 * used
        memory.hold(bytes(capacity), "the rows of bits of the recursive relations")
        rowOf = Arrays.copyOf(rowOf, capacity)
        full = Arrays.copyOf(full, capacity * width)
        delta = Arrays.copyOf(delta, capacity * width)
      }
      rowOf(used) = row
      slots(row) = used
      used += 1
    }
    slots(row)
  }

  private def bytes(capacity: Int): Long =
    capacity * (16L * width + 4) + 17L * slots.length + 12L * edges.length + 8L * table.length + knownBytes

  /** Adds `words` to a row, from `from` on. */
  private def send(words: Array[Long], from: Int, row: Int): Unit = {
    val at = slotOf(row) * width
    val (f, d) = (full, delta)
    var any = 0L
    var j = 0
    while (j < width) {
      val fresh = words(from + j) & ~f(at + j)
      any |= fresh
      f(at + j) |= fresh
      d(at + j) |= fresh
      j += 1
    }
    if (any != 0) enqueue(row)
  }

  /** Adds an edge; if it is new, sends along it. */
  private def add(edge: Long): Unit = {
    if (2 * (added + 1) > table.length) rehash()
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
      if (slots(source) >= 0) send(full, slots(source) * width, head(edge))
    }
  }

  private def head(edge: Long): Int =
    (edge & VertexMask).toInt * relations + form.flows((edge >>> FlowShift).toInt).head

  private def insert(edge: Long): Boolean = {
    val mask = table.length - 1
    var s = KeyMap.mix(edge).toInt & mask
    while (table(s) != -1 && table(s) != edge) s = (s + 1) & mask
    val isNew = table(s) == -1
    table(s) = edge
    isNew
  }

  private def rehash(): Unit = {
    val old = table
    table = Array.fill(2 * old.length)(-1L)
    old.foreach(e => if (e != -1) insert(e))
    memory.hold(bytes(rowOf.length), "the edges between rows of bits")
  }

  /** Follows edges until nothing changes. */
  private def follow(): Unit = {
    val words = new Array[Long](width)
    while (queued > 0) {
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
        val at = slots(row) * width
        System.arraycopy(delta, at, words, 0, width)
        Arrays.fill(delta, at, at + width, 0L)
        var link = first(row)
        while (link >= 0) {
          send(words, 0, head(edges(link)))
          link = links(link)
        }
        form.flows.indices.foreach(f => apply(f, row, words))
        if ((i & 63) == 63) gang.check()
        i += 1
      }
    }
  }

  /** Applies a flow to the new bits of a row. */
  private def apply(number: Int, row: Int, words: Array[Long]): Unit = {
    val flow = form.flows(number)
    val (vertex, relation) = (row / relations, row % relations)
    if (flow.reads == relation) derive(number, vertex, words)
    else if (flow.reads < 0 && flow.source == relation) {
      if (flow.index < 0) send(words, 0, vertex * relations + flow.head)
      else {
        val (offsets, targets) = (known.offsets(number), known.targets(number))
        var e = offsets(vertex)
        while (e < offsets(vertex + 1)) {
          send(words, 0, targets(e) * relations + flow.head)
          e += 1
        }
      }
    }
  }

  /** Adds the edges that new pairs of a row make. */
  private def derive(number: Int, vertex: Int, words: Array[Long]): Unit = {
    val flow = form.flows(number)
    val (offsets, targets) = (known.offsets(number), known.targets(number))
    val isPossible = flow.index < 0 || flow.key != FlowSpec.Row || offsets(vertex) < offsets(vertex + 1)
    ends(FlowSpec.Row) = vertex
    var j = 0
    while (isPossible && j < width) {
      var left = words(j)
      while (left != 0) {
        ends(FlowSpec.Carried) = vertexOf(64 * j + java.lang.Long.numberOfTrailingZeros(left))
        left &= left - 1
        if (flow.index < 0) add(edge(number, flow))
        else {
          var e = offsets(ends(flow.key))
          val end = offsets(ends(flow.key) + 1)
          while (e < end) {
            ends(FlowSpec.Found) = targets(e)
            add(edge(number, flow))
            e += 1
          }
        }
      }
      j += 1
    }
  }

  private def edge(number: Int, flow: FlowSpec): Long =
    number.toLong << FlowShift | ends(flow.origin).toLong << VertexBits | ends(flow.target)

  /** Passes the rows of a relation to `emit`, as blocks of bits. */
  def rows(output: Int)(emit: BitmapBlock => Unit): Unit = {
    val xs = Arrays.copyOf(values.words, values.size)
    val found = (0 until used).filter(s => rowOf(s) % relations == output)
    found.grouped(math.max(1, BlockWords / width)).foreach { slots =>
      val bits = new Array[Long](slots.length * width)
      slots.indices.foreach(i => System.arraycopy(full, slots(i) * width, bits, i * width, width))
      emit(BitmapBlock(xs, slots.map(s => vertices.words(rowOf(s) / relations)).toArray, width, bits))
    }
  }
}

object BitRowsLoop {

  /** An edge as a word: the flow, the origin, the target. */
  private val FlowShift = 56
  private val VertexBits = 28
  private val VertexMask = (1L << VertexBits) - 1

  /** 8 MiB for the bits of a block of the result. */
  private val BlockWords = 1 << 20

  /** 1 GiB for all rows of bits, if each is used. */
  private val MaxWords = 1L << 27

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
    val words = known.vertices.size.toLong * bases.length * (values.size / 64 + 1)
    val isLarge = words > MaxWords || known.vertices.size >= VertexMask
    if (gang.allreduce(Array(if (isLarge) 1.0 else 0.0))(0) > 0) None
    else Some(new BitRowsLoop(form, known, bases, values, gang, memory))
  }
}
