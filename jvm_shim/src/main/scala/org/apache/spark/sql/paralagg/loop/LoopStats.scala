package org.apache.spark.sql.paralagg.loop

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.paralagg.gang.RunCounts
import org.apache.spark.sql.paralagg.state.LoopState

/** The counts of a loop by iteration. Every task has the same sums; task 0 reports them. */
final class LoopStats(relations: Array[String], tasks: Int) {
  import LoopStats._

  var iterations = 0

  /** The iteration of the checkpoint that the loop resumed from; the first one counted here is the next. */
  var resumed = 0
  private val quoted = relations.map(quote)
  private val rows = ArrayBuffer.empty[(Int, Double, Array[Double])]
  private var isAhead = false
  private var changed = 0L
  private var bytes = 0L
  private var heaviest = 0L

  /** Forgets all iterations. */
  def clear(): Unit = {
    iterations = 0
    rows.clear()
    changed = 0
    bytes = 0
    heaviest = 0
  }

  /** The number of votes, at the end, of which the maximum counts instead of the sum. */
  val maxima: Int = relations.length + 1

  /** The votes of a task that has nothing to vote on. */
  val none: Array[Double] = new Array[Double](Sizes + (Numbers + 1) * relations.length + 1)

  /**
   * Returns the votes of a meeting: rows changed, Σ|Δ|, tasks with an overflow, bytes, work since the last votes, then
   * of each relation its delta, its rows when the iteration began, and its rows now. Deltas and work follow again, as
   * maxima: those of the task with most. In place, a task does not know at its vote which rows it will receive. So the
   * rows after an iteration are those with which the next one begins.
   */
  def votes(changed: Long, difference: Double, overflows: Double, loop: LoopState): Array[Double] = {
    val parts = loop.parts
    val out = none.clone()
    out(0) = changed.toDouble
    out(1) = difference
    out(2) = overflows
    out(Bytes) = loop.sentBytes.toDouble
    out(Work) = loop.work.toDouble
    out(out.length - 1) = out(Work)
    loop.work = 0
    loop.sentBytes = 0
    var r = 0
    while (r < parts.length) {
      out(Sizes + Numbers * r) = parts(r).currentSize
      out(Sizes + Numbers * r + 1) = parts(r).rowsBefore.toDouble
      out(Sizes + Numbers * r + 2) = parts(r).rows.toDouble
      out(Sizes + Numbers * parts.length + r) = parts(r).currentSize
      r += 1
    }
    out
  }

  /** Takes back the votes of a meeting that did not end an iteration. */
  def retract(votes: Array[Double], loop: LoopState): Unit = {
    loop.sentBytes += votes(Bytes).toLong
    loop.work += votes(Work).toLong
  }

  /** Adds the sums of an iteration; with `ahead`, their delta and rows before are those of the previous one. */
  def add(sums: Array[Double], seconds: Double, ahead: Boolean): Unit = {
    isAhead = ahead
    rows += ((resumed + rows.length + 1, seconds, sums))
    changed += delta(sums)
    bytes += sums(Bytes).toLong
    heaviest += sum(sums, Sizes + Numbers * relations.length, 1)
  }

  /** Returns the progress of the loop after the last sums. */
  def counts(iteration: Int): RunCounts = {
    val sums = rows.last._3
    RunCounts(iteration, delta(sums), total(sums), changed, bytes, heaviest)
  }

  def delta(sums: Array[Double]): Long = sum(sums, Sizes, Numbers)
  def total(sums: Array[Double]): Long = sum(sums, Sizes + 2, Numbers)

  /** Returns the sum over the relations of every `stride`-th number from `at` on. */
  private def sum(sums: Array[Double], at: Int, stride: Int): Long = {
    var all = 0.0
    var r = 0
    while (r < relations.length) {
      all += sums(at + stride * r)
      r += 1
    }
    all.toLong
  }

  /** Returns Σ|Δ| of an iteration, if it was counted here. */
  def difference(iteration: Int): Option[Double] = rows.lift(iteration - resumed - 1).map(_._3(FixpointLoop.Difference))

  /** Returns the rows of a relation's delta on the task with most of them. */
  private def maxDelta(sums: Array[Double], r: Int): Double = sums(Sizes + Numbers * relations.length + r)

  /** Returns the largest delta of a task divided by the average, as JSON; null if the delta is empty. */
  private def balance(sums: Array[Double], r: Int, delta: Long): String =
    if (delta == 0) "null" else (maxDelta(sums, r) * tasks / delta).toString

  /** Returns the work of the task with most, divided by the average, as JSON; null without work. */
  private def workBalance(sums: Array[Double]): String =
    if (sums(Work) == 0) "null" else (sums(Sizes + (Numbers + 1) * relations.length) * tasks / sums(Work)).toString

  def perIteration: Seq[String] = for {
    ((iteration, seconds, sums), at) <- rows.toSeq.zipWithIndex
    r <- relations.indices
  } yield {
    val later = if (isAhead) rows.lift(at + 1).map(_._3) else None
    val deltaSums = if (isAhead) later else Some(sums)
    val delta = deltaSums.fold(0L)(_(Sizes + Numbers * r).toLong)
    val total = later.fold(sums(Sizes + Numbers * r + 2))(_(Sizes + Numbers * r + 1)).toLong
    s"""{"iteration":$iteration,"relation":${quoted(r)},"delta":$delta,"total":$total,""" +
      s""""seconds":$seconds,"bytes":${if (r == 0) sums(Bytes).toLong else 0},""" +
      s""""balance":${deltaSums.fold("null")(balance(_, r, delta))},""" +
      s""""work":${if (r == 0) sums(Work).toLong else 0},"work_balance":${if (r == 0) workBalance(sums) else "null"}}"""
  }

  def tuples: Long = rows.lastOption.fold(0L)(r => total(r._3))
}

object LoopStats {
  private val Bytes = 3
  private val Work = 4
  private val Sizes = 5
  private val Numbers = 3

  import org.json4s.JString
  import org.json4s.jackson.JsonMethods
  def quote(text: String): String = JsonMethods.compact(JString(text))
}
