package org.apache.spark.sql.paralagg.loop

import java.util.BitSet

import org.apache.spark.sql.paralagg.codegen.KernelCode
import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.plan.{FallsSpec, StratumSpec}
import org.apache.spark.sql.paralagg.state.{Accumulator, LoopState, LostRows, RelationPart}
import org.apache.spark.sql.types.{DoubleType, FloatType}

/**
 * The search for the rows of a kept state that may have lost their support: the first half of delete and re-derive
 * (`maintenance/over_delete.py` says which rows fall). The loop's own rules read the values of the rows, and write what
 * they derive beside them. Derived from a removed row, then from rows that fell, it never is better than a row's value,
 * since the rows are a fixpoint: the best one tells whether the row falls.
 */
final class Falling(stratum: StratumSpec, kept: LoopState, falls: FallsSpec, code: KernelCode, gang: Gang) {
  private val parts = kept.parts.map(_.beside)
  private val all = kept.over(parts, Map.empty, Map.empty)
  private val runner = runnerOf(all, _ => true)
  private val exchange = new DeltaExchange(stratum, all, runner.combiners, gang)
  private val fallen = parts.map(_ => new BitSet)

  /** The number of rows that fell, in all tasks. */
  var count: Long = 0

  /** Tests whether more rows fell than may. The search has then ended early. */
  def isTooMany: Boolean = count > falls.most

  /** Searches from rows that static indexes lose, and from base rows that were removed. Collective. */
  def run(lost: Seq[LostRows], base: RelationPart => Array[LoadedRows]): Unit = {
    parts.foreach(p => runner.put(p, p.pending, base(p)))
    lost.foreach { l =>
      val over = kept.over(parts, Map(l.index -> l.rows), l.targets)
      parts.foreach(takeDrivers(_, l))
      runnerOf(over, stratum.rules(_).probes.exists(_.index == l.index)).applyRules()
    }
    var isActive = true
    while (isActive) {
      exchange.run(Array.emptyDoubleArray, 0)
      parts.foreach(takeFallen)
      val fell = gang.allreduce(Array(parts.map(_.currentSize).sum.toDouble))(0).toLong
      count += fell
      isActive = fell > 0 && !isTooMany
      if (isActive) runner.applyRules()
      gang.check()
    }
    kept.parts.foreach(p => p.shareGhosts(parts(p.index)))
    parts.foreach(p => p.state = p.pending) // of the rows that fell it has the values
  }

  /** Returns the ids of the rows that fell. */
  def ids: Array[Array[Int]] = fallen.map(_.stream().toArray)

  /** Returns the fallen rows that `loop` does not have, by relation: a part with their values, and their ids. */
  def gone(loop: LoopState): Seq[(RelationPart, Iterator[Int])] =
    parts.toSeq.map(p => p -> ids(p.index).iterator.filterNot(loop.part(p.index).isPresent))

  private def runnerOf(loop: LoopState, applies: Int => Boolean) =
    new Runner(stratum, loop, code, () => gang.check(), applies)

  /** Makes the rows current to which rules with a lost row may apply. */
  private def takeDrivers(p: RelationPart, lost: LostRows): Unit = {
    val probes = stratum.rules.filter(_.driver.relation == p.index).flatMap(_.probes).filter(_.index == lost.index)
    val ids = if (probes.forall(_.aligned)) lost.rows.filled else Array.range(0, p.keys.size)
    p.current = if (probes.isEmpty) Array.emptyIntArray else ids.filter(p.isPresent)
    p.currentSize = p.current.length
  }

  /** Makes the rows current that fall by what was derived since the last call. */
  private def takeFallen(p: RelationPart): Unit = {
    val derived = p.pending
    val n = derived.dirtySize
    p.current = derived.takeDirty(p.current)
    derived.setFlags(p.current, n, clear = Accumulator.Queued)
    p.currentSize = 0
    var i = 0
    while (i < n) {
      val id = p.current(i)
      if (p.isPresent(id) && !fallen(p.index).get(id) && supports(p, id)) {
        fallen(p.index).set(id)
        copyRow(p, id)
        p.current(p.currentSize) = id
        p.currentSize += 1
      }
      i += 1
    }
  }

  /** Tests whether the best derived row supports row `id`; a null counts as the same value. */
  private def supports(p: RelationPart, id: Int): Boolean = falls.by < 0 || {
    val (row, derived) = (p.state, p.pending)
    val valid = row.valid(falls.by)
    val hasNull = valid != null && (valid(id) == 0 || derived.valid(falls.by)(id) == 0)
    hasNull || isSame(p, row.columns(falls.by)(id), derived.columns(falls.by)(id))
  }

  private def isSame(p: RelationPart, old: Long, derived: Long): Boolean = {
    def isNear(a: Double, b: Double) = a == b || a.isNaN && b.isNaN || math.abs(a - b) <= math.abs(a) * falls.tolerance
    old == derived || (p.spec.dependents(falls.by).column.dataType match {
      case DoubleType => isNear(java.lang.Double.longBitsToDouble(old), java.lang.Double.longBitsToDouble(derived))
      case FloatType => isNear(java.lang.Float.intBitsToFloat(old.toInt), java.lang.Float.intBitsToFloat(derived.toInt))
      case _ => false
    })
  }

  private def copyRow(p: RelationPart, id: Int): Unit = p.state.columns.indices.foreach { j =>
    p.pending.columns(j)(id) = p.state.columns(j)(id)
    if (p.state.valid(j) != null) p.pending.valid(j)(id) = p.state.valid(j)(id)
  }
}
