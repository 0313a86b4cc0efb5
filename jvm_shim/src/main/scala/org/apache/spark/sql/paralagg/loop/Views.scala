package org.apache.spark.sql.paralagg.loop

import java.util.Arrays

import org.apache.spark.sql.paralagg.codegen.Sums
import org.apache.spark.sql.paralagg.load.DoubleWord
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.{Accumulator, LoopState, RelationPart, RowAddress}
import org.apache.spark.sql.types._

/**
 * Relations whose rows follow others of the stratum (`mcount`, `msum`), brought up to date between rounds: what a witness adds
 * now, less what it added before, is added to the count that it belongs to. A relation and those that it follows are
 * distributed alike, so all of this stays within a task.
 */
final class Views(stratum: StratumSpec, loop: LoopState) {
  private val all: Array[View] = for {
    target <- loop.parts if target.spec.isView
    source <- target.spec.dependents.flatMap(_.view).map(_.relation).distinct
  } yield new View(loop, target, loop.part(source))

  val targets: Array[RelationPart] = all.map(_.target).distinct

  def bytes: Long = all.map(_.bytes).sum

  /** After a round of a lattice: rows that changed in what is followed change the rows here, which are dirty then. */
  def follow(): Unit = all.foreach(v => v.follow(v.source.current, v.source.currentSize, v.target.state))

  /** After a round of an iterated relation: all rows anew, into `pending`. */
  def recount(): Unit = all.foreach { v =>
    v.forget()
    v.follow(v.source.state.dirty, v.source.state.dirtySize, v.target.pending)
  }

  /** After a checkpoint was read: the rows are there already. */
  def settle(): Unit = all.foreach(_.settle())
}

/** Those columns of `target` that follow `source`. */
private final class View(loop: LoopState, val target: RelationPart, val source: RelationPart) {
  private val keys = target.spec.keys.length
  private val columns =
    target.spec.dependents.indices.filter(target.spec.dependents(_).view.exists(_.relation == source.index))
      .toArray
  private val counted = columns.filter(j => target.spec.dependents(j).merging.isCounted)
  private val copied = columns.filterNot(counted.contains)
  private val from = columns.map(j => j -> target.spec.dependents(j).view.get.column).toMap

  /** What each row of the source has added to each counted column. */
  private val added = counted.map(_ => Array.emptyLongArray)

  /** The row here of each row of the source; -1 where it is not known yet. */
  private var idOf = Array.emptyIntArray
  private val key = new Array[Long](target.shape.keyWords)

  def bytes: Long = idOf.length * (4L + 8L * counted.length)

  def forget(): Unit = added.foreach(Arrays.fill(_, 0L))

  def follow(rows: Array[Int], size: Int, into: Accumulator): Unit = {
    ensure()
    var i = 0
    while (i < size) {
      val row = rows(i)
      val id = find(row)
      var changed = (into.flags(id) & Accumulator.Present) == 0
      var c = 0
      while (c < counted.length) {
        val now = amount(counted(c), row)
        if (now != added(c)(row)) {
          val column = into.columns(counted(c))
          column(id) = plus(counted(c), column(id), now, added(c)(row))
          added(c)(row) = now
          changed = true
        }
        c += 1
      }
      copied.foreach { j =>
        changed = true
        into.columns(j)(id) = source.state.columns(from(j))(row)
        if (into.valid(j) != null) {
          val theirs = source.state.valid(from(j))
          into.valid(j)(id) = if (theirs == null) 1 else theirs(row)
        }
      }
      if (changed) mark(into, id, row)
      i += 1
    }
  }

  def settle(): Unit = {
    ensure()
    (0 until source.keys.size).filter(row => (source.state.flags(row) & Accumulator.Present) != 0).foreach { row =>
      counted.indices.foreach(c => added(c)(row) = amount(counted(c), row))
    }
  }

  private def mark(into: Accumulator, id: Int, row: Int): Unit = {
    if ((into.flags(id) & Accumulator.Queued) == 0) {
      into.dirty(into.dirtySize) = id
      into.dirtySize += 1
    }
    into.flags(id) = (into.flags(id) | Accumulator.Queued | Accumulator.Present).toByte
    if (target.isTraced) into.parents(id) = RowAddress.of(source.index, loop.me, row)
  }

  private def ensure(): Unit = {
    val known = idOf.length
    if (source.state.capacity > known) {
      idOf = Arrays.copyOf(idOf, source.state.capacity)
      Arrays.fill(idOf, known, idOf.length, -1)
      added.indices.foreach(c => added(c) = Arrays.copyOf(added(c), idOf.length))
    }
  }

  private def find(row: Int): Int = {
    if (idOf(row) < 0) {
      var c = 0
      while (c < keys) {
        key(c) = source.keys.word(row, c)
        c += 1
      }
      if (target.shape.hasNullKeys) key(keys) = nulls(row) & ((1L << keys) - 1)
      idOf(row) = target.keys.add(key)
      if (target.keys.size > target.state.capacity || target.keys.size > target.pending.capacity) target.grow()
    }
    idOf(row)
  }

  private def nulls(row: Int): Long =
    if (source.shape.hasNullKeys) source.keys.word(row, source.spec.keys.length) else 0L

  /** What a row adds: as words of the column here, and none below zero. */
  private def amount(j: Int, row: Int): Long = {
    val column = from(j)
    if (nulls(row) >>> keys != 0) 0L
    else if (column < 0) 1L
    else {
      val valid = source.state.valid(column)
      val word = source.state.columns(column)(row)
      if (valid != null && valid(row) == 0) 0L
      else source.spec.dependents(column).column.dataType match {
        case DoubleType => positive(java.lang.Double.longBitsToDouble(word))
        case FloatType => positive(java.lang.Float.intBitsToFloat(word.toInt).toDouble)
        case _ => math.max(0L, word)
      }
    }
  }

  /** Not below zero. NaN is larger than any number, as Spark has it. */
  private def positive(value: Double): Long = DoubleWord.word(if (value < 0) 0.0 else value)

  private def plus(j: Int, total: Long, now: Long, before: Long): Long =
    target.spec.dependents(j).column.dataType match {
      case DoubleType =>
        def number(word: Long): Double = java.lang.Double.longBitsToDouble(word)
        DoubleWord.word(number(total) + (if (before == 0L) number(now) else number(now) - number(before)))
      case d: DecimalType => Sums.addDecimal(total, now - before, d.precision)
      case _ => Sums.addLong(total, now - before)
    }
}
