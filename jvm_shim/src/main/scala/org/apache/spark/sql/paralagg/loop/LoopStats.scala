package org.apache.spark.sql.paralagg.loop

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.paralagg.gang.RunCounts
import org.apache.spark.sql.paralagg.state.RelationPart

/** What a loop counted, iteration by iteration; every task has the same sums, task 0 reports them. */
final class LoopStats(relations: Array[String], tasks: Int) {
  import LoopStats._

  var iterations = 0

  /** Iterations that a checkpoint brought: the first one counted here is the next. */
  var resumed = 0
  private val quoted = relations.map(quote)
  private val rows = ArrayBuffer.empty[(Int, Double, Array[Double])]
  private var early = false
  private var changed = 0L
  private var bytes = 0L
  private var heaviest = 0L

  /** Of the votes, how many count by the greatest. */
  val maxima: Int = relations.length

  /**
   * Votes of a meeting: rows changed, Σ|Δ|, tasks with an overflow, bytes, then delta and total of each relation; and delta once
   * more, which shows the task that has most of it.
   */
  def votes(
      changed: Long, difference: Double, overflows: Double, parts: Array[RelationPart], bytes: Double): Array[Double] =
    Array(changed.toDouble, difference, overflows, bytes) ++ parts.flatMap(p =>
      Array(p.currentSize.toDouble, p.rows.toDouble)) ++ parts.map(_.currentSize.toDouble)

  /** `ahead`: the delta in these sums is what the iteration before left. */
  def add(sums: Array[Double], seconds: Double, ahead: Boolean): Unit = {
    early = ahead
    rows += ((resumed + rows.length + 1, seconds, sums))
    changed += delta(sums)
    bytes += sums(Bytes).toLong
    heaviest += relations.indices.map(most(sums, _)).sum.toLong
  }

  /** How far the loop is after the last sums. */
  def counts(iteration: Int): RunCounts = {
    val sums = rows.last._3
    RunCounts(iteration, delta(sums), total(sums), changed, bytes, heaviest)
  }

  def delta(sums: Array[Double]): Long = relations.indices.map(r => sums(Sizes + 2 * r)).sum.toLong
  def total(sums: Array[Double]): Long = relations.indices.map(r => sums(Sizes + 1 + 2 * r)).sum.toLong

  /** Σ|Δ| of an iteration, if it was counted here. */
  def difference(iteration: Int): Option[Double] = rows.lift(iteration - resumed - 1).map(_._3(FixpointLoop.Difference))

  /** Rows of a relation's delta on the task that has most of them. */
  private def most(sums: Array[Double], r: Int): Double = sums(Sizes + 2 * relations.length + r)

  /** The heaviest task's part of a delta, by the average of all; null where there is none. */
  private def balance(sums: Array[Double], r: Int, delta: Long): String =
    if (delta == 0) "null" else (most(sums, r) * tasks / delta).toString

  def perIteration: Seq[String] = for {
    ((iteration, seconds, sums), at) <- rows.toSeq.zipWithIndex
    r <- relations.indices
  } yield {
    val shown = if (early) rows.lift(at + 1).map(_._3) else Some(sums)
    val delta = shown.fold(0L)(_(Sizes + 2 * r).toLong)
    val total = shown.getOrElse(sums)(Sizes + 1 + 2 * r).toLong
    s"""{"iteration":$iteration,"relation":${quoted(r)},"delta":$delta,"total":$total,""" +
      s""""seconds":$seconds,"bytes":${if (r == 0) sums(Bytes).toLong else 0},""" +
      s""""balance":${shown.fold("null")(balance(_, r, delta))}}"""
  }

  def tuples: Long = rows.lastOption.fold(0L)(r => total(r._3))
}

object LoopStats {
  private val Bytes = 3
  private val Sizes = 4

  import org.json4s.JString
  import org.json4s.jackson.JsonMethods
  def quote(text: String): String = JsonMethods.compact(JString(text))
}
