package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.codegen.{Kernel, KernelCode}
import org.apache.spark.sql.paralagg.plan.{RuleSpec, StratumSpec}
import org.apache.spark.sql.paralagg.state.{Accumulator, Combiner, DerivedRows, LoopState, RelationPart, TargetSums}

/** Rows of a block: ids of their keys, and their values as combiners read them. */
final case class LoadedRows(ids: Array[Int], values: Array[Long])

/**
 * The calls of a stratum's generated code: it applies the rules to the delta, and combines rows into accumulators. Of
 * all rules, by position, it takes those that `applies` names.
 */
final class Runner(
    stratum: StratumSpec, loop: LoopState, code: KernelCode, check: () => Unit, applies: Int => Boolean = _ => true) {
  import Runner._

  val combiners: Array[Combiner] = loop.parts.map(p => code.combiner(p.index, loop.strings))
  private val (byTarget, others) =
    stratum.rules.zipWithIndex.filter(r => applies(r._2)).partition { case (r, _) => code.mayAddByTarget(r) }
  private val drivers = {
    val byDriver = others.groupBy { case (r, _) => (r.driver.relation, r.driver.index) }
    byDriver.toSeq.sortBy(_._1).map { case ((relation, copy), rules) =>
      (code.kernel(rules.toSeq), if (copy < 0) loop.part(relation) else loop.relationIndex(copy).part)
    }.toArray
  }
  private val gathered = others.map(_._1).filter(_.target.isComputed).map(_.head).distinct.flatMap { head =>
    val (part, combiner) = (loop.part(head), combiners(head))
    loop.derived(head) = new DerivedRows(part, combiner, areGhosts = false)
    loop.derivedGhosts(head) = new DerivedRows(part, combiner, areGhosts = true)
    Seq(loop.derived(head), loop.derivedGhosts(head))
  }.toArray
  private val ofCopies = drivers.filter { case (_, part) => !loop.parts.contains(part) }
  private val sums = byTarget.map { case (rule, position) => new SummedRule(rule, position) }
  private var chunk = FirstChunk

  /** How often a rule added up its sums by target. */
  var addedByTarget = 0

  /** Applies all rules. */
  def applyRules(): Unit = {
    drivers.foreach { case (kernel, part) => run(kernel, part) }
    sums.foreach(_.apply())
  }

  /** Applies the rules that copies drive. */
  def applyCopies(): Unit = ofCopies.foreach { case (kernel, part) => run(kernel, part) }

  /** A rule that adds by target if all sources contribute; other rounds add edge by edge. */
  private final class SummedRule(rule: RuleSpec, position: Int) {
    private val driver = loop.part(rule.driver.relation)
    private val index = loop.staticIndex(rule.resolvingProbe.index)
    private val sources = index.filled.length
    private lazy val contributions = code.kernel(Seq((rule, position)), contributes = true)
    private lazy val edges = code.kernel(Seq((rule, position)))
    private def byTarget: TargetSums = loop.targetSums(position)

    def apply(): Unit = if (!(driver.currentSize >= sources && addByTarget())) run(edges, driver)

    private def addByTarget(): Boolean = {
      if (byTarget == null)
        loop.targetSums(position) = new TargetSums(index, loop.resolved(position), loop.part(rule.head))
      byTarget.contributed = 0
      val before = loop.work
      run(contributions, driver)
      val isComplete = byTarget.contributed == sources
      if (isComplete) {
        byTarget.add()
        loop.work += byTarget.edges
        addedByTarget += 1
      } else loop.work = before
      isComplete
    }
  }

  /**
   * Applies a kernel to the delta, in chunks of some milliseconds each. `check` comes after each: a cancelled task stops
   * soon, and one that holds many rows for others sends them.
   */
  private def run(kernel: Kernel, part: RelationPart): Unit = {
    var from = 0
    while (from < part.currentSize) {
      val began = System.nanoTime()
      from =
        try {
          val next = kernel.run(loop, from, math.min(part.currentSize, from + chunk))
          gathered.foreach(_.flush())
          next
        } catch { case e: ArithmeticException if !code.ansi => throw overflows(e) }
      val duration = System.nanoTime() - began
      if (duration > ChunkNanos) chunk = math.max(1, chunk / 4)
      else if (duration < ChunkNanos / 8) chunk = math.min(MaxChunk, chunk * 2)
      check()
    }
  }

  /** Combines base or initial rows into an accumulator of `p`. */
  def put(p: RelationPart, into: Accumulator, rows: Array[LoadedRows]): Unit =
    rows.foreach(r => combiners(p.index).rows(into, r.ids, r.values, 0, p.valueWords, r.ids.length))
}

object Runner {
  private val FirstChunk = 64
  private val MaxChunk = 4096
  private val ChunkNanos = 40L * 1000 * 1000

  /** Replaces Spark's error of a check that the proof needs: its hint, to turn ANSI mode off, does not apply. */
  private def overflows(e: ArithmeticException): ParalaggException = new ParalaggException(
    ErrorCodes.AssumptionViolated,
    "the proof assumes that no value overflows its type, and one does.",
    "use a wider type, or mode='iterate', where values wrap around as without ANSI mode.",
    e)
}
