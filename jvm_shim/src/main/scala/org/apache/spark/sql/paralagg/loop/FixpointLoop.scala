package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.codegen.{KernelCode, SumOverflow}
import org.apache.spark.sql.paralagg.gang.{Gang, MemoryAccount}
import org.apache.spark.sql.paralagg.load.{Block, Routes}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.{Accumulator, LoopState, RelationPart}
import org.apache.spark.sql.types.{DecimalType, DoubleType, FloatType}

/**
 * One task's part of the fixpoint: apply all rules to the delta, exchange rows that other tasks own, aggregate, vote.
 *
 * In place (a lattice without a limit) an iteration is one pass and one meeting. In rounds, rules write to `pending`,
 * and the relation changes only after the whole step. So iterations are exactly those of docs/design.md, "Iterations":
 * {{{
 *   lattice       delta = what pending improves
 *   accumulating  state += pending;  delta = pending            (theorem 1 of Wang et al. 2020, PowerLog)
 *   iterated      state = base ∪ pending                        (recomputed each round)
 * }}}
 */
final class FixpointLoop(
    stratum: StratumSpec,
    routes: Routes,
    loop: LoopState,
    code: KernelCode,
    gang: Gang,
    memory: MemoryAccount,
    blocks: Int => Array[Block],
    checkpoint: Option[Checkpoint]) {
  import FixpointLoop._

  private val parts = loop.parts
  private val combiners = parts.map(p => code.combiner(p.index, loop.strings))
  private val exchange = new DeltaExchange(stratum, loop, combiners, gang)
  private val copies = new CopyExchange(stratum, loop, gang)
  private val views = View.all(loop)
  private val (followers, derived) = parts.partition(_.spec.isView)
  private val ownIndexes = loop.indexes.values.filterNot(_.spec.copy).toArray
  private val drivers = {
    val byDriver = stratum.rules.zipWithIndex.groupBy { case (r, _) => (r.driver.relation, r.driver.index) }
    byDriver.toSeq.sortBy(_._1).map { case ((relation, copy), rules) =>
      (code.kernel(rules.toSeq), if (copy < 0) parts(relation) else loop.relationIndex(copy).part)
    }.toArray
  }
  private val base = parts.map(p => loop.baseIds(p.index).zip(blocks(routes.base(p.index)).map(p.values)))

  val stats = new LoopStats(stratum.relations.map(_.name), gang.tasks)

  def run(): Unit = {
    var iteration = resume()
    stats.resumed = iteration
    if (iteration == 0) start()
    var isActive = isBelowLimit(iteration)
    while (isActive) {
      iteration += 1
      val began = System.nanoTime()
      val sums = if (stratum.inPlace) passInPlace() else round()
      stats.add(sums, (System.nanoTime() - began) / 1e9, ahead = stratum.inPlace)
      val changed = sums(Changed) > 0 && !stratum.tolerance.exists(sums(Difference) < _)
      isActive = changed && isBelowLimit(iteration)
      val isEndless = sums(Overflow) > 0 || isActive && isClimbing(iteration, sums)
      // Before the check, so that a peer that ends the run cannot hide the iteration that all tasks have finished.
      if (gang.part == 0) gang.progress(isLast = !isActive || isEndless)(stats.counts(iteration))
      gang.check()
      memory.hold(parts.map(_.bytes).sum + views.map(_.bytes).sum + loop.statics.values.map(_.bytes).sum,
        "the recursive relation")
      if (isActive && !isEndless)
        checkpoint.filter(_.isDue(iteration)).foreach(_.write(iteration, p => if (stratum.inPlace) p.state else null))
      if (isEndless) {
        val overflowed = sums(Overflow) > 0
        throw new EndlessClimb(iteration, overflowed, if (overflowed) overflow else null)
      }
      if (changed && !isActive && stratum.onLimitError) throw limitReached(iteration, sums)
    }
    stats.iterations = iteration
  }

  private val isBounded = stratum.maxIterations.isDefined || stratum.tolerance.isDefined || !stratum.cycleCheck
  private val sumsFractions = stratum.relations.flatMap(_.dependents).exists { d =>
    d.isSum && (d.column.dataType match {
      case DoubleType | FloatType | _: DecimalType => true
      case _ => false
    })
  }

  /**
   * Tests for an endless climb. If values still change after more rounds than there are keys, each change goes around a
   * cycle. If rules only translate values, the climb is endless; otherwise they may converge late, and `climbLimit`
   * decides. Sums of fractions may converge too (damping): they climb if the changes are no smaller than one turn
   * around all keys before. An iterated step may start from initial rows beyond the fixpoint, so it gets at least
   * `MinClimb` iterations.
   */
  private def isClimbing(iteration: Int, sums: Array[Double]): Boolean = !isBounded && {
    val turn = stats.total(sums) + 1
    if (stratum.climbLimit.isDefined) iteration >= stratum.climbLimit.get
    else if (sumsFractions)
      iteration > 2 * turn && stats.difference(iteration - turn.toInt).exists(_ <= sums(Difference))
    else iteration > (if (stratum.isIterated) math.max(turn, MinClimb) else turn)
  }

  /** Repeats an endless climb as a traced run until parents form a cycle, and throws it. Every task throws the same. */
  def trace(climb: EndlessClimb): Nothing = {
    start()
    val search = new CycleTrace(loop, gang)
    var iteration = 0
    var cycle = Seq.empty[String]
    var isActive = true
    while (isActive) {
      iteration += 1
      val sums = if (stratum.inPlace) passInPlace() else round()
      if (iteration <= 64 || Integer.bitCount(iteration) == 1 || sums(Overflow) > 0) cycle = search.find()
      isActive = cycle.isEmpty && iteration <= 2 * climb.iterations && sums(Overflow) == 0
    }
    throw endless(climb, cycle)
  }

  private var overflow: SumOverflow = _

  /** Runs `body` and records an overflow, which ends the run after all tasks have voted. */
  private def catchOverflow(body: => Unit): Unit =
    try body
    catch { case e: SumOverflow if stratum.cycleCheck => overflow = e }

  private def isBelowLimit(iteration: Int): Boolean = stratum.maxIterations.forall(iteration < _)

  private def initial(p: RelationPart): Array[(Array[Int], Array[Long])] =
    blocks(routes.initial(p.index)).map(b => (p.ids(b), p.values(b)))

  /** Puts the initial rows of settled relations into the state, all indexes and copies, but into no delta. */
  private def settle(): Unit = {
    parts.filter(_.spec.settled).foreach { p =>
      val rows = initial(p)
      p.grow()
      put(p, p.state, rows)
      takeCurrent(p)
      p.setFlags(set = Accumulator.Settled)
    }
    if (!stratum.inPlace) publish()
    parts.foreach { p =>
      Rounds.unmark(p)
      p.currentSize = 0
    }
  }

  /** Sets R₀: the initial rows if there are any, else base rows; both if the initial rows are settled. */
  private def start(): Unit = {
    if (parts.exists(_.spec.settled)) settle()
    parts.foreach { p =>
      val rows = if (routes.initial(p.index) < 0 || p.spec.settled) base(p.index) else initial(p)
      p.grow()
      put(p, p.state, rows)
      if (stratum.isAccumulating) put(p, p.delta, rows)
      if (stratum.isIterated) Rounds.readAll(p)
      else if (!stratum.inPlace) takeCurrent(p)
    }
    followViews()
    if (!stratum.inPlace) publish()
  }

  /** Restores the newest checkpoint and returns its iteration, or 0 if there is none. */
  private def resume(): Int = {
    val newest = checkpoint.fold(0)(_.newest())
    if (newest > 0) {
      parts.foreach(_.grow())
      checkpoint.get.read(newest, (p, id, isDelta) => Rounds.restore(p, id, isDelta, stratum))
      parts.foreach(p => if (stratum.isIterated) Rounds.readAll(p) else if (!stratum.inPlace) Rounds.mark(p))
      views.foreach(_.settle())
    }
    newest
  }

  private def put(p: RelationPart, into: Accumulator, rows: Array[(Array[Int], Array[Long])]): Unit =
    rows.foreach { case (ids, values) => combiners(p.index).rows(into, ids, values, 0, p.valueWords, ids.length) }

  /** Applies the rules to the delta in one pass that reads its own writes. */
  private def passInPlace(): Array[Double] = {
    parts.foreach { p =>
      p.current = takeDirty(p)
      p.count()
    }
    runKernels()
    val queued = parts.map(_.state.dirtySize).sum
    exchange.run(stats.votes(queued + exchange.waiting, 0.0, 0.0, parts, exchange.bytes), stats.maxima)
  }

  private def round(): Array[Double] = {
    catchOverflow {
      if (stratum.isIterated) parts.foreach(p => put(p, p.pending, base(p.index)))
      runKernels()
    }
    catchOverflow(exchange.run(NoVotes))
    var changed = 0L
    var difference = 0.0
    derived.foreach { p =>
      // The rows of a viewed relation are counted through its view: only that is visible, and read by rules.
      val isCounted = !stratum.isViewed(p.index)
      val rows =
        if (stratum.isIterated) {
          val (replaced, d) = Rounds.replace(p)
          difference += d
          replaced
        } else {
          catchOverflow { difference += combiners(p.index).apply(p.pending, p.state) }
          if (stratum.isAccumulating) Rounds.swapDelta(p) else p.pending.clearDirty()
          takeCurrent(p)
          p.currentSize
        }
      if (isCounted) changed += rows
      if (rows > 0 && hasNoDistance(p)) difference = Double.PositiveInfinity
    }
    val followed = followViews()
    changed += followed
    if (followed > 0 && stratum.tolerance.isDefined) difference = Double.PositiveInfinity
    publish()
    val failed = if (overflow == null) 0.0 else 1.0
    gang.allreduce(
      stats.votes(changed, difference, failed, parts, exchange.takeBytes() + copies.takeBytes()),
      stats.maxima)
  }

  /** Tests for a relation without sums: with a tolerance, a change of its rows counts as an infinite difference. */
  private def hasNoDistance(p: RelationPart): Boolean =
    stratum.tolerance.isDefined && !p.spec.dependents.exists(_.isSum)

  /** Updates the relations that follow others; returns the number of their changed rows. */
  private def followViews(): Long = if (followers.isEmpty) 0L
  else if (stratum.isIterated) {
    catchOverflow(views.foreach(_.recount()))
    followers.map(Rounds.replace(_)._1).sum
  } else {
    catchOverflow(views.foreach(_.follow()))
    followers.map { p =>
      takeCurrent(p)
      p.currentSize.toLong
    }.sum
  }

  /** Adds the delta to the indexes of its relation, and to the copies on other tasks. */
  private def publish(): Unit = {
    ownIndexes.foreach(_.linkCurrent())
    copies.run()
  }

  private def takeDirty(p: RelationPart): Array[Int] = {
    p.currentSize = p.state.dirtySize
    p.state.takeDirty(p.current)
  }

  /** Moves the list of changed rows from the accumulator to `current`, and marks it as the delta. */
  private def takeCurrent(p: RelationPart): Unit = {
    Rounds.unmark(p)
    p.current = takeDirty(p)
    Rounds.mark(p)
    p.count()
  }

  /** Runs the kernels in chunks of some milliseconds each, so that a cancelled task stops soon. */
  private def runKernels(): Unit = drivers.foreach { case (kernel, part) =>
    var from = 0
    while (from < part.currentSize) {
      val to = math.min(part.currentSize, from + chunk)
      val began = System.nanoTime()
      try kernel.run(loop, from, to)
      catch { case e: ArithmeticException if !code.ansi => throw overflows(e) }
      val duration = System.nanoTime() - began
      if (duration > ChunkNanos) chunk = math.max(1, chunk / 4)
      else if (duration < ChunkNanos / 8) chunk = math.min(MaxChunk, chunk * 2)
      gang.check()
      from = to
    }
  }

  private var chunk = FirstChunk

  private def limitReached(iterations: Int, sums: Array[Double]) = new ParalaggException(
    ErrorCodes.LimitReached,
    s"${stratum.name}: ${stats.delta(sums)} rows still change after $iterations iterations.",
    "raise max_iterations, or set on_limit='return' to get R_n itself.")

  private def endless(climb: EndlessClimb, cycle: Seq[String]) = new ParalaggException(
    ErrorCodes.NoFixpoint,
    s"${stratum.name}: " + (
      if (!climb.overflowed && stratum.climbLimit.isDefined)
        s"values still change after ${climb.iterations} iterations, the most that spark.paralagg.climb.maxIterations allows"
      else if (!climb.overflowed) s"values still change after ${climb.iterations} iterations, more than there are keys"
      else s"a sum overflows in iteration ${climb.iterations}") + (
      if (cycle.isEmpty) "." else s": a cycle never ends, ${FixpointLoop.format(cycle)}."),
    if (climb.overflowed && cycle.isEmpty) FixpointLoop.OverflowHint
    else if (stratum.climbLimit.isDefined && !climb.overflowed) FixpointLoop.LimitHint
    else "remove the cycle, bound the values with a filter, or set max_iterations with on_limit='return'.",
    climb.overflow)
}

/** A run that does not end: more iterations than keys, or an overflow. All tasks throw it in the same round. */
class EndlessClimb(val iterations: Int, val overflowed: Boolean, val overflow: SumOverflow) extends RuntimeException

object FixpointLoop {

  /** Replaces Spark's error of a check that the proof needs: its hint, to turn ANSI mode off, does not apply. */
  private def overflows(e: ArithmeticException): ParalaggException = new ParalaggException(
    ErrorCodes.AssumptionViolated,
    "the proof assumes that no value overflows its type, and one does.",
    "use a wider type, or mode='iterate', where values wrap around as without ANSI mode.",
    e)

  private val FirstChunk = 64
  private val MaxChunk = 4096
  private val MinClimb = 100L
  private val ChunkNanos = 40L * 1000 * 1000
  private val NoVotes = Array.emptyDoubleArray
  private[paralagg] val Changed = 0
  private[paralagg] val Difference = 1
  private[paralagg] val Overflow = 2
  private val MaxKeys = 12
  private val OverflowHint =
    "there is no such cycle: the sum overflows before later rows reduce it. Cast the " +
      "column to double, or to a wider decimal."
  private val LimitHint =
    "if the values converge, raise that setting; otherwise bound them with a filter, or set max_iterations."

  /** Formats the closed cycle; a long one is abbreviated. */
  private def format(cycle: Seq[String]): String = {
    val around = cycle :+ cycle.head
    if (around.length <= MaxKeys) around.mkString(" -> ")
    else around.take(MaxKeys - 1).mkString(" -> ") + s" -> … (${cycle.length} keys) -> ${cycle.head}"
  }
}
