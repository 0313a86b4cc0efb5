package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.codegen.{KernelCode, SumOverflow}
import org.apache.spark.sql.paralagg.gang.{Gang, MemoryAccount}
import org.apache.spark.sql.paralagg.load.Block
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.{Accumulator, Hubs, LoopState, ReappliedRows, RelationPart}
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
    loop: LoopState,
    code: KernelCode,
    gang: Gang,
    memory: MemoryAccount,
    baseRows: RelationPart => Array[LoadedRows],
    initialRows: RelationPart => Option[Array[LoadedRows]],
    checkpoint: Option[Checkpoint],
    hubs: Option[Hubs] = None,
    rollOverRows: Long = 0,
    reapplied: Option[Array[ReappliedRows]] = None,
    derivedAgain: Array[ReappliedRows] = Array.empty) {
  import FixpointLoop._

  private val parts = loop.parts
  private val runner: Runner = new Runner(stratum, loop, code, () => { gang.check(); rollOver.check() })
  private val exchange = new DeltaExchange(stratum, loop, runner.combiners, gang)
  private val copies = new CopyExchange(stratum, loop, gang)
  private val views = View.all(loop)
  private val (followers, derived) = parts.partition(_.spec.isView)
  private val ownIndexes = loop.indexes.values.filterNot(_.spec.copy).toArray
  private var base = parts.map(baseRows)

  val stats = new LoopStats(stratum.relations.map(_.name), gang.tasks)
  private val rollOver = new RollOver(stratum, loop, exchange, gang, stats, rollOverRows)
  private val passes = new Passes(
    stratum, loop, runner, exchange, rollOver, hubs.map(new HubRows(_, loop, runner, gang)), gang, stats)

  /** The number of exchanges that ended no iteration. */
  def earlyExchanges: Int = rollOver.early

  /** Tests whether rows were taken by their values. */
  def isByValue: Boolean = passes.appliedByValue > 0

  /** Tests whether iterations added up sums by target. */
  def isByTarget: Boolean = runner.addedByTarget > 0

  /** Removes all rows, to run from `block` as the base rows of the only relation. */
  def restart(block: Block): Unit = {
    parts.foreach(_.clear())
    stats.clear()
    passes.reset()
    base = parts.map(p => Array(LoadedRows(p.ids(block), p.values(block))))
  }

  def run(): Unit = {
    var iteration = resume()
    stats.resumed = iteration
    if (iteration == 0) start()
    var isActive = isBelowLimit(iteration)
    while (isActive) {
      iteration += 1
      val began = System.nanoTime()
      val sums = step()
      stats.add(sums, (System.nanoTime() - began) / 1e9, ahead = stratum.inPlace)
      val changed = sums(Changed) > 0 && !stratum.tolerance.exists(sums(Difference) < _)
      val hasEnough = stratum.endsAt.exists(stats.total(sums) >= _)
      isActive = changed && !hasEnough && isBelowLimit(iteration)
      val isEndless = sums(Overflow) > 0 || isActive && isClimbing(iteration, sums)
      // Before the check, so that a peer that ends the run cannot hide the iteration that all tasks have finished.
      if (gang.part == 0) gang.progress(isLast = !isActive || isEndless)(stats.counts(iteration))
      gang.check()
      holdMemory()
      if (isActive && !isEndless)
        checkpoint.filter(_.isDue(iteration)).foreach(writeTo(_, iteration))
      if (isEndless) {
        val overflowed = sums(Overflow) > 0
        throw new EndlessClimb(iteration, overflowed, if (overflowed) overflow else null)
      }
      if (changed && !isActive && !hasEnough && stratum.onLimitError) throw limitReached(iteration, sums)
    }
    stats.iterations = iteration
    (reapplied.toSeq.flatten ++ derivedAgain).foreach(_.settleUnchanged())
  }

  private var size = -1L

  /** Reserves the memory of the state if it has grown. */
  private def holdMemory(): Unit = {
    val ofViews = views.map(_.bytes).sum
    var latest = ofViews
    var r = 0
    while (r < parts.length) {
      latest += parts(r).state.capacity + parts(r).ghost.capacity
      r += 1
    }
    if (latest != size) {
      size = latest
      memory.hold(parts.map(_.bytes).sum + ofViews + loop.staticBytes(stratum, gang), "the recursive relation")
    }
  }

  private def step(): Array[Double] = if (stratum.inPlace) passes.step() else round()

  private def writeTo(checkpoint: Checkpoint, iteration: Int): Unit = {
    if (stratum.inPlace) passes.release()
    checkpoint.write(iteration, p => if (stratum.inPlace) p.state else null)
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
   * `MinClimb` iterations. Passes that take rows by their values prove nothing and are not counted.
   */
  private def isClimbing(iteration: Int, sums: Array[Double]): Boolean = !isBounded && !passes.isByValue && {
    val turn = stats.total(sums) + 1 + passes.appliedByValue
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
      val sums = step()
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

  /** Puts the initial rows of settled relations into the state, all indexes and copies, but into no delta. */
  private def settle(): Unit = {
    parts.filter(_.spec.settled).foreach { p =>
      val rows = initialRows(p).get
      p.grow()
      runner.put(p, p.state, rows)
      takeCurrent(p)
      p.setFlags(set = Accumulator.Settled)
    }
    if (!stratum.inPlace) publish()
    parts.foreach { p =>
      Rounds.unmark(p)
      p.currentSize = 0
    }
  }

  /**
   * Sets R₀: the initial rows if there are any, else base rows; both if the initial rows are settled. If the state has
   * the settled rows already, the rules are applied to those that new static rows join, too.
   */
  private def start(): Unit = {
    reapplied.foreach(_.foreach(_.enqueue()))
    if (reapplied.isEmpty && parts.exists(_.spec.settled)) settle()
    parts.foreach { p =>
      val rows = (if (p.spec.settled) None else initialRows(p)).getOrElse(base(p.index))
      p.grow()
      runner.put(p, p.state, rows)
      if (stratum.isAccumulating) runner.put(p, p.delta, rows)
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

  private def round(): Array[Double] = {
    catchOverflow {
      if (stratum.isIterated) parts.foreach(p => runner.put(p, p.pending, base(p.index)))
      runner.applyRules()
    }
    catchOverflow(rollOver.run(NoVotes))
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
          catchOverflow { difference += runner.combiners(p.index).apply(p.pending, p.state) }
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
    gang.allreduce(stats.votes(changed, difference, failed, loop), stats.maxima)
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

  /** Moves the list of changed rows from the accumulator to `current`, and marks it as the delta. */
  private def takeCurrent(p: RelationPart): Unit = {
    Rounds.unmark(p)
    p.takeDirty()
    Rounds.mark(p)
    p.count()
  }

  private def limitReached(iterations: Int, sums: Array[Double]) = new ParalaggException(
    ErrorCodes.LimitReached,
    s"${stratum.name}: ${stats.delta(sums)} rows still change after $iterations iterations.",
    "raise the limit (max_iterations; max_iter of ra.graph, MAX RECURSION LEVEL in SQL, .limit in a text), or set " +
      "on_limit='return' to get R_n itself.")

  private def endless(climb: EndlessClimb, cycle: Seq[String]) = new ParalaggException(
    if (climb.overflowed && cycle.isEmpty) ErrorCodes.Overflow else ErrorCodes.NoFixpoint,
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

  private val MinClimb = 100L
  private val NoVotes = Array.emptyDoubleArray
  private[paralagg] val Changed = 0
  private[paralagg] val Difference = 1
  private[paralagg] val Overflow = 2
  private val MaxKeys = 12
  private val OverflowHint =
    "no cycle makes it grow: give the base a wider type, such as a decimal with more digits, or double."
  private val LimitHint =
    "if the values converge, raise that setting; otherwise bound them with a filter, or set max_iterations."

  /** Formats the closed cycle; a long one is abbreviated. */
  private def format(cycle: Seq[String]): String = {
    val around = cycle :+ cycle.head
    if (around.length <= MaxKeys) around.mkString(" -> ")
    else around.take(MaxKeys - 1).mkString(" -> ") + s" -> … (${cycle.length} keys) -> ${cycle.head}"
  }
}
