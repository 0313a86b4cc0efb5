package org.apache.spark.sql.paralagg.loop

import java.util.Arrays

import org.apache.spark.sql.paralagg.codegen.Sums
import org.apache.spark.sql.paralagg.load.DoubleWord
import org.apache.spark.sql.paralagg.state.{Accumulator, LoopState, RelationPart, RowAddress}
import org.apache.spark.sql.types._

/**
 * The columns of `target` that follow `source` (`mcount`, `msum`, `h_index`), updated between rounds. A source row
 * changes the count of its target row by its new amount less its previous one. A relation and those that it follows have
 * the same distribution, so no exchange is needed.
 */
final class View(loop: LoopState, target: RelationPart, source: RelationPart) {
  private val keys = target.spec.keys.length
  private val columns =
    target.spec.dependents.indices.filter(target.spec.dependents(_).view.exists(_.relation == source.index))
      .toArray
  private val (ranked, unranked) = columns.partition(target.spec.dependents(_).view.get.total >= 0)
  private val counted = unranked.filter(target.spec.dependents(_).merging.isCounted)
  private val copied = unranked.filterNot(counted.contains)
  private val from = columns.map(j => j -> target.spec.dependents(j).view.get.column).toMap

  /** The amount that each source row has added to each counted column. */
  private val added = counted.map(_ => Array.emptyLongArray)

  private val hIndexes = ranked.map(_ => new HIndexes)
  private val totals = ranked.map(target.spec.dependents(_).view.get.total)

  /** The target row of each source row; -1 if not resolved yet. */
  private var targetRows = Array.emptyIntArray
  private val key = new Array[Long](target.shape.keyWords)

  def bytes: Long = targetRows.length * (4L + 8L * counted.length) + hIndexes.map(_.bytes).sum

  /** Applies the changed rows of the source after a round of a lattice, and marks the changed rows dirty. */
  def follow(): Unit = update(source.current, source.currentSize, target.state)

  /** Recomputes all rows into `pending` after a round of an iterated relation. */
  def recount(): Unit = {
    added.foreach(Arrays.fill(_, 0L))
    hIndexes.foreach(_.clear())
    update(source.state.dirty, source.state.dirtySize, target.pending)
  }

  private def update(rows: Array[Int], size: Int, into: Accumulator): Unit = {
    ensure()
    var i = 0
    while (i < size) {
      val row = rows(i)
      val id = targetRow(row)
      var changed = (into.flags(id) & Accumulator.Present) == 0
      var c = 0
      while (c < counted.length) {
        val latest = amount(counted(c), row)
        if (latest != added(c)(row)) {
          val column = into.columns(counted(c))
          column(id) = plus(counted(c), column(id), latest, added(c)(row))
          added(c)(row) = latest
          changed = true
        }
        c += 1
      }
      var r = 0
      while (r < ranked.length) {
        val level = rank(r, id, row)
        val column = into.columns(ranked(r))
        if (column(id) != level) {
          column(id) = level
          changed = true
        }
        r += 1
      }
      copied.foreach { j =>
        changed = true
        into.columns(j)(id) = source.state.columns(from(j))(row)
        if (into.valid(j) != null) {
          val valid = source.state.valid(from(j))
          into.valid(j)(id) = if (valid == null) 1 else valid(row)
        }
      }
      if (changed) mark(into, id, row)
      i += 1
    }
  }

  /** Takes a source row into column `ranked(r)`, and returns the h-index of its target row. */
  private def rank(r: Int, id: Int, row: Int): Long = {
    val column = from(ranked(r))
    val hasValue = nulls(row) >>> keys == 0 && isValid(column, row)
    val value = if (hasValue) math.max(0L, source.state.columns(column)(row)) else HIndexes.Any
    hIndexes(r).ensure(target.state.capacity, targetRows.length)
    hIndexes(r).take(id, math.max(0L, source.state.columns(totals(r))(row)), row, value)
  }

  private def isValid(column: Int, row: Int): Boolean = {
    val valid = source.state.valid(column)
    valid == null || valid(row) != 0
  }

  /** Records the amounts of restored rows, which the target contains already. */
  def settle(): Unit = {
    ensure()
    (0 until source.keys.size).filter(row => (source.state.flags(row) & Accumulator.Present) != 0).foreach { row =>
      counted.indices.foreach(c => added(c)(row) = amount(counted(c), row))
      ranked.indices.foreach(rank(_, targetRow(row), row))
    }
  }

  private def mark(into: Accumulator, id: Int, row: Int): Unit = {
    into.enqueue(id)
    if (target.isTraced) into.parents(id) = RowAddress.of(source.index, loop.me, row)
  }

  private def ensure(): Unit = {
    val size = targetRows.length
    if (source.state.capacity > size) {
      targetRows = Arrays.copyOf(targetRows, source.state.capacity)
      Arrays.fill(targetRows, size, targetRows.length, -1)
      added.indices.foreach(c => added(c) = Arrays.copyOf(added(c), targetRows.length))
    }
  }

  private def targetRow(row: Int): Int = {
    if (targetRows(row) < 0) {
      var c = 0
      while (c < keys) {
        key(c) = source.keys.word(row, c)
        c += 1
      }
      if (target.shape.hasNullKeys) key(keys) = nulls(row) & ((1L << keys) - 1)
      targetRows(row) = target.keys.add(key)
      if (target.keys.size > target.state.capacity || target.keys.size > target.pending.capacity) target.grow()
    }
    targetRows(row)
  }

  private def nulls(row: Int): Long =
    if (source.shape.hasNullKeys) source.keys.word(row, source.spec.keys.length) else 0L

  /** Returns the amount that a row adds, as a word of the target's column, at least 0. */
  private def amount(j: Int, row: Int): Long = {
    val column = from(j)
    if (nulls(row) >>> keys != 0) 0L
    else if (column < 0) 1L
    else {
      val word = source.state.columns(column)(row)
      if (!isValid(column, row)) 0L
      else source.spec.dependents(column).column.dataType match {
        case DoubleType => positive(java.lang.Double.longBitsToDouble(word))
        case FloatType => positive(java.lang.Float.intBitsToFloat(word.toInt).toDouble)
        case _ => math.max(0L, word)
      }
    }
  }

  /** Returns the word of `value`, at least 0; NaN is larger than any number, as in Spark. */
  private def positive(value: Double): Long = DoubleWord.word(if (value < 0) 0.0 else value)

  private def plus(j: Int, total: Long, latest: Long, before: Long): Long =
    target.spec.dependents(j).column.dataType match {
      case DoubleType =>
        def number(word: Long): Double = java.lang.Double.longBitsToDouble(word)
        DoubleWord.word(number(total) + (if (before == 0L) number(latest) else number(latest) - number(before)))
      case d: DecimalType => Sums.addDecimal(total, latest - before, d.precision)
      case _ => Sums.addLong(total, latest - before)
    }
}

object View {

  /** Returns the views of a stratum, one for each relation that another one follows. */
  def all(loop: LoopState): Array[View] = for {
    target <- loop.parts if target.spec.isView
    source <- target.spec.dependents.flatMap(_.view).map(_.relation).distinct
  } yield new View(loop, target, loop.part(source))
}
