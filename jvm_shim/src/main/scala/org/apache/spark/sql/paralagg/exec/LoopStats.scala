package org.apache.spark.sql.paralagg.exec

import scala.collection.mutable.ArrayBuffer

/** What a loop counted, iteration by iteration; every task has the same sums, task 0 reports them. */
final class LoopStats(relations: Array[String]) {
  var iterations = 0

  /** Iterations that a checkpoint brought: the first one counted here is the next. */
  var resumed = 0
  private val rows = ArrayBuffer.empty[(Int, Double, Array[Double])]
  private var early = false

  /** Votes of a meeting: rows changed, Σ|Δ|, tasks with an overflow, bytes, then delta and total of each relation. */
  def votes(
      changed: Long, difference: Double, overflows: Double, parts: Array[RelationPart], bytes: Double): Array[Double] =
    Array(changed.toDouble, difference, overflows, bytes) ++ parts.flatMap(p =>
      Array(p.currentSize.toDouble, p.rows.toDouble))

  /** `ahead`: the delta in these sums is what the iteration before left. */
  def add(sums: Array[Double], seconds: Double, ahead: Boolean): Unit = {
    early = ahead
    rows += ((resumed + rows.length + 1, seconds, sums))
  }

  def delta(sums: Array[Double]): Long = relations.indices.map(r => sums(4 + 2 * r)).sum.toLong
  def total(sums: Array[Double]): Long = relations.indices.map(r => sums(5 + 2 * r)).sum.toLong

  /** Σ|Δ| of an iteration, if it was counted here. */
  def difference(iteration: Int): Option[Double] = rows.lift(iteration - resumed - 1).map(_._3(FixpointLoop.Difference))

  def perIteration: Seq[String] = for {
    ((iteration, seconds, sums), at) <- rows.toSeq.zipWithIndex
    r <- relations.indices
  } yield {
    val shown = if (early) rows.lift(at + 1).map(_._3) else Some(sums)
    val delta = shown.fold(0L)(_(4 + 2 * r).toLong)
    val total = shown.getOrElse(sums)(5 + 2 * r).toLong
    s"""{"iteration":$iteration,"relation":${LoopStats.quote(relations(r))},"delta":$delta,"total":$total,""" +
      s""""seconds":$seconds,"bytes":${sums(3).toLong}}"""
  }

  def tuples: Long = rows.lastOption.fold(0L)(r => total(r._3))
}

object LoopStats {
  import org.json4s.JString
  import org.json4s.jackson.JsonMethods
  def quote(text: String): String = JsonMethods.compact(JString(text))
}
