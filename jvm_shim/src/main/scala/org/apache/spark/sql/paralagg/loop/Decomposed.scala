package org.apache.spark.sql.paralagg.loop

import java.util.concurrent.atomic.AtomicInteger

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.paralagg.codegen.KernelCode
import org.apache.spark.sql.paralagg.gang.{Gang, MemoryAccount, SingleTask}
import org.apache.spark.sql.paralagg.load.{Block, Dictionary, OpenBlock, Routes}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.{
  BlockKeys, KeyMap, LoopBuilder, LoopState, RelationPart, RouteContents, Shape
}

/**
 * The evaluation of a stratum for each value of its carried keys separately (the Plan's decomposition), in plain arrays
 * (twin of `mpi_backend/loop/decomposed.py`). Tasks exchange nothing. The tasks of an executor share keys and static
 * indexes, and take the values from one queue.
 *
 * @param blocks the loaded blocks of a route
 * @param contents what each route's columns hold in this run
 */
final class Decomposed(
    stratum: StratumSpec,
    routes: Routes,
    blocks: Int => Array[Block],
    contents: Array[RouteContents],
    strings: Dictionary,
    ansi: Boolean,
    gang: Gang,
    memory: MemoryAccount) {

  private val carried = stratum.decomposition.get.carried
  private val inner = stratum.decomposition.get.stratum
  private val start = Decomposed.start(routes)
  private val kept = stratum.relations(0).columns.indices.filterNot(carried.contains).toArray
  private val alone = new SingleTask(gang)
  private val innerRoutes = {
    val static = inner.staticIndexes.map { i =>
      val same = stratum.staticIndexes.find(o => o.input == i.input && o.keys.sameElements(i.keys))
      i.id -> routes.static(same.get.id)
    }
    Routes(routes.all, Array(routes.all.length), Array(-1), static.toMap)
  }
  private val shape = {
    val base = RouteContents(kept.map(contents(start).nulls(_)), kept.map(_ => false))
    new Shape(inner, innerRoutes, contents :+ base)
  }
  private val shared = share()
  private val own = shared.loop.sibling

  /** The greatest number of iterations of a value, and the number of rows. */
  var iterations = 0
  var tuples = 0L

  /** Computes one fixpoint for each value; passes it to `emit` with its rows, before the next one overwrites them. */
  def run(emit: (Array[Long], RelationPart) => Unit): Unit = {
    val part = own.part(0)
    val loop = fixpoint(traced = false)
    memory.hold(shared.bytes / gang.localTasks + part.bytes, "the recursive relation")
    var value = shared.next.getAndIncrement()
    while (value < shared.values.size && stratum.endsAt.forall(tuples < _)) {
      loop.restart(shared.rows(value))
      try loop.run()
      catch {
        case climb: EndlessClimb =>
          own.restartTraced()
          val traced = fixpoint(traced = true)
          traced.restart(shared.rows(value))
          traced.trace(climb)
      }
      iterations = math.max(iterations, loop.stats.iterations)
      tuples += part.rows
      emit(Array.tabulate(carried.length)(shared.values.word(value, _)), part)
      value = shared.next.getAndIncrement()
    }
    val sums = gang.allreduce(Array(tuples.toDouble, iterations.toDouble), maxima = 1)
    tuples = sums(0).toLong
    iterations = sums(1).toInt
  }

  private def fixpoint(traced: Boolean): FixpointLoop = new FixpointLoop(
    inner, own, new KernelCode(inner, shape, 1, ansi, traced), alone, memory, _ => Array.empty, _ => None, None)

  /** Builds, once an executor, what its tasks share, from the base rows of all of them. */
  private def share(): Decomposed.Shared = {
    val all = gang.gather(blocks(start))
    gang.once {
      val rows = all.filter(_ != null).flatten
      val (values, byValue) = split(rows)
      val innerBlocks = (route: Int) => if (route == routes.all.length) byValue else blocks(route)
      val loop = new LoopBuilder(inner, innerRoutes, shape, alone, strings, memory, innerBlocks).build()
      new Decomposed.Shared(loop, values, byValue, new AtomicInteger)
    }
  }

  /** Returns the values of the carried keys, and for each the other columns of its rows. */
  private def split(rows: Array[Block]): (KeyMap, Array[Block]) = {
    val values = KeyMap(carried.length)
    val all = ArrayBuffer.empty[OpenBlock]
    val key = new Array[Long](carried.length)
    rows.foreach { b =>
      val in = b.allColumns
      val keys = carried.map(in)
      var i = 0
      while (i < b.rows) {
        BlockKeys.fill(key, b, carried, keys, i, hasMask = false)
        val value = values.add(key)
        if (value == all.length) all += new OpenBlock(0, kept.length)
        val to = all(value)
        to.reserve(1)
        kept.indices.foreach { c =>
          if (b.isNull(kept(c), i)) to.setNull(c, to.rows)
          to.columns(c)(to.rows) = in(kept(c))(i)
        }
        to.rows += 1
        i += 1
      }
    }
    (values, all.map(_.close()).toArray)
  }
}

object Decomposed {

  /** The maximum of carried values of a task. Of more, each probably has few rows: hashing all together is cheaper. */
  private val MostValues = 4096

  /** Returns the route of the rows to start from. */
  private def start(routes: Routes): Int = if (routes.initial(0) >= 0) routes.initial(0) else routes.base(0)

  /** Tests whether the Plan has a decomposition and its carried keys have few values and no nulls. Collective. */
  def fits(stratum: StratumSpec, routes: Routes, shape: Shape, blocks: Int => Array[Block], gang: Gang): Boolean =
    stratum.decomposition.exists { d =>
      val values = KeyMap(d.carried.length)
      val key = new Array[Long](d.carried.length)
      for (b <- blocks(start(routes))) {
        val in = d.carried.map(b.column)
        for (i <- 0 until b.rows if values.size <= MostValues) {
          BlockKeys.fill(key, b, d.carried, in, i, hasMask = false)
          values.add(key)
        }
      }
      val isFew = values.size <= MostValues && !shape.relations(0).hasNullKeys
      gang.allreduce(Array(if (isFew) 0.0 else 1.0))(0) == 0
    }

  /** The inner stratum's keys and indexes, the values of the carried keys, their base rows, and the next one to take. */
  private final class Shared(
      val loop: LoopState, val values: KeyMap, val rows: Array[Block], val next: AtomicInteger) {
    def bytes: Long = rows.map(_.bytes).sum + loop.statics.values.map(_.bytes).sum
  }
}
