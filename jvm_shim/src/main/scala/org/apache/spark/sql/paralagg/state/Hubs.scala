package org.apache.spark.sql.paralagg.state

import java.util.SplittableRandom

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.paralagg.gang.{Codec, Gang}
import org.apache.spark.sql.paralagg.load.{Block, BlockStore, Dictionary, OpenBlock, Owner, Routes, WordColumn}
import org.apache.spark.sql.paralagg.plan.{HubsSpec, StratumSpec}

/**
 * The hubs of this task's rows: those with more than 1/`heavyParts` of a task's fair part of all edges (docs/balance.md).
 * Their edges move to the tasks of their targets, to indexes of their own (the Plan's `Hubs`).
 *
 * @param keys the hubs' keys, by index of edges
 * @param all the keys of all indexes
 * @param count the number of hubs in all tasks
 */
final class Hubs private (
    val spec: HubsSpec, val routes: Routes, keys: Array[KeyMap], val all: KeyMap, val count: Int, shape: Shape,
    gang: Gang) {

  /** Moves the edges of hubs. Returns the blocks by the routes of the stratum with hubs. Collective. */
  def move(
      blocks: Array[Array[Block]], strings: Dictionary, store: BlockStore, codec: Codec[Array[Block]])
      : Array[Array[Block]] = {
    val out = Array.fill(gang.tasks)(ArrayBuffer.empty[Block])
    val kept = blocks.clone()
    spec.edges.indices.foreach { e =>
      val (from, to) = spec.edges(e)
      val split = new EdgeSplit(spec.stratum, routes, from, to, keys(e), shape, gang, strings)
      val route = routes.static(from)
      kept(route) = if (keys(e).size == 0) blocks(route) else blocks(route).map(split.take(_, store)).filter(_.rows > 0)
      split.taken().zip(out).foreach { case (edges, o) => if (edges.rows > 0) o += edges }
    }
    val (in, _) = gang.exchange(out.map(_.toArray), codec, Array.emptyDoubleArray)
    val received = in.filter(_ != null).flatten
    received.foreach(store.add)
    routes.all.map(r => if (r.id < kept.length) kept(r.id) else received.filter(_.route == r.id))
  }
}

object Hubs {
  private val SampledRows = 1 << 16

  /** A heavy key has more edges than so many times the mean of the others. */
  private val TimesOthers = 2

  /** Finds the hubs; none if the Plan has no form for them, or one task will run the loop ([[Fold]]). Collective. */
  def find(
      stratum: StratumSpec, routes: Routes, shape: Shape, blocks: Array[Array[Block]], gang: Gang, heavyParts: Int,
      oneTaskRows: Long): Option[Hubs] =
    stratum.hubs.filter(_ => heavyParts > 0 && gang.tasks > 1).flatMap { spec =>
      val rows = spec.edges.map { case (from, _) => blocks(routes.static(from)) }
      val edges = gang.allreduce(rows.map(_.map(_.rows.toDouble).sum))
      if (Fold.isFew(edges.sum, gang, oneTaskRows)) None
      else {
        val keys = rows.indices.map { e =>
          heavy(rows(e), stratum.staticIndex(spec.edges(e)._1).keys.length, edges(e), heavyParts, gang)
        }.toArray
        val all = KeyMap(keys(0).arity)
        keys.foreach(hubs => (0 until hubs.size).foreach(h => all.add(hubs.words, h * hubs.arity)))
        val count = gang.allreduce(Array(all.size.toDouble))(0).toInt
        if (count == 0) None else Some(new Hubs(spec, Routes.of(spec.stratum), keys, all, count, shape, gang))
      }
    }

  /**
   * Returns the heavy keys, estimated from a sample: all rows of a key are in this task. There are none unless one has
   * twice as much, since spreading edges costs a further exchange. A key whose number of edges is common is not heavy.
   * Collective.
   */
  private def heavy(blocks: Array[Block], keyColumns: Int, edges: Double, heavyParts: Int, gang: Gang): KeyMap = {
    val total = blocks.map(_.rows.toLong).sum
    val columns = Array.range(0, keyColumns)
    val key = new Array[Long](keyColumns)
    val sampled = KeyMap(keyColumns)
    val counts = new Array[Int](SampledRows + blocks.length)
    val random = new SplittableRandom(0)
    var n = 0
    blocks.filter(_.rows > 0).foreach { b =>
      val in = columns.map(b.column)
      val picked = math.ceil(b.rows * math.min(1.0, SampledRows.toDouble / total)).toInt
      var i = 0
      while (i < picked) {
        BlockKeys.fill(key, b, columns, in, if (picked == b.rows) i else random.nextInt(b.rows), hasMask = false)
        counts(sampled.add(key)) += 1
        i += 1
      }
      n += picked
    }
    def edgesOf(id: Int) = counts(id) * (total.toDouble / n)
    val most = (0 until sampled.size).map(edgesOf).fold(0.0)(_ max _)
    val Array(keys, mostOfAll) = gang.allreduce(Array(sampled.size.toDouble, most), maxima = 1)
    val share = edges / (heavyParts.toDouble * gang.tasks)
    val hubs = KeyMap(keyColumns)
    if (mostOfAll > 2 * share) (0 until sampled.size).foreach { id =>
      val others = if (keys > 1) (edges - edgesOf(id)) / (keys - 1) else 0.0
      if (edgesOf(id) > math.max(share, TimesOthers * others)) {
        columns.foreach(c => key(c) = sampled.word(id, c))
        hubs.add(key)
      }
    }
    hubs
  }
}

/** The split of the blocks of one index of edges into those of hubs, by the owner of their target, and others. */
private final class EdgeSplit(
    stratum: StratumSpec, routes: Routes, from: Int, to: Int, hubs: KeyMap, shape: Shape, gang: Gang,
    strings: Dictionary) {
  private val index = stratum.staticIndex(from)
  private val relation = stratum.relations(0)
  private val relationShape = shape.relations(0)
  private val width = index.keys.length + index.payload.length
  private val keyColumns = index.keys.indices.toArray
  private val targetColumns = stratum.staticIndex(to).partitionBy.map((index.keys ++ index.payload).indexOf(_))
  private val owner = new Owner(relation, relation.distributeBy, relationShape.hasNullKeys, gang.tasks, strings)
  private val key = new Array[Long](index.keys.length)
  private val target = new Array[Long](math.max(1, relationShape.keyWords))

  private val open = Array.fill(gang.tasks)(new OpenBlock(routes.static(to), width))

  /** Returns the edges of hubs, by task, once. */
  def taken(): Array[Block] = open.map(_.close())

  /** Takes the edges of hubs out of a block; returns it, or a new one, which `store` holds. */
  def take(b: Block, store: BlockStore): Block = {
    val in = b.allColumns
    val keys = keyColumns.map(in)
    val rest = new OpenBlock(b.route, width)
    var first = 0 // the rows from here on have not been copied
    var i = 0
    while (i < b.rows) {
      BlockKeys.fill(key, b, keyColumns, keys, i, hasMask = false)
      if (hubs.find(key) >= 0) {
        append(b, in, first, i, rest)
        append(b, in, i, i + 1, open(owner.taskOf(targetOf(b, in, i))))
        first = i + 1
      }
      i += 1
    }
    if (first == 0) b
    else {
      append(b, in, first, b.rows, rest)
      b.free()
      val left = rest.close()
      if (left.rows > 0) store.add(left)
      left
    }
  }

  private def targetOf(b: Block, in: Array[WordColumn], row: Int): Array[Long] = {
    var mask = 0L
    var k = 0
    while (k < targetColumns.length) {
      val c = targetColumns(k)
      if (b.isNull(c, row)) mask |= 1L << relation.distributeBy(k)
      else target(relation.distributeBy(k)) = in(c)(row)
      k += 1
    }
    if (relationShape.hasNullKeys) target(relation.keys.length) = mask
    target
  }

  private def append(b: Block, in: Array[WordColumn], from: Int, until: Int, out: OpenBlock): Unit = if (from < until) {
    out.reserve(until - from)
    var c = 0
    while (c < width) {
      in(c).copy(from, out.columns(c), out.rows, until - from)
      if (b.nulls(c) != null) (from until until).foreach { r =>
        if (b.isNull(c, r)) out.setNull(c, out.rows + r - from)
      }
      c += 1
    }
    out.rows += until - from
  }
}
