package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.codegen.KernelCode
import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.load.LongBuffer
import org.apache.spark.sql.paralagg.plan.{RuleSpec, StratumSpec}
import org.apache.spark.sql.paralagg.state.{LoopState, RelationPart, SideRows}

/**
 * What the rows of a kept state add to others along some static rows. Under sums a rule must not be applied twice along
 * the same row, so those that are new, or that lead to rows that are derived again, are taken alone.
 */
final class Shares(stratum: StratumSpec, kept: LoopState, code: KernelCode, gang: Gang) {
  private val parts = kept.parts.map(_.beside)

  /** Returns the sums along the rows of all `sides`, by relation. Collective. */
  def along(sides: Seq[SideRows]): Array[LoadedRows] = {
    def runnerOf(loop: LoopState, applies: Int => Boolean) =
      new Runner(stratum, loop, code, () => gang.check(), applies)
    sides.foreach { side =>
      parts.foreach(Shares.takeDrivers(stratum, _, side))
      val over = kept.over(parts, Map(side.index -> side.rows), side.targets)
      runnerOf(over, rule => Shares.reads(stratum.rules(rule), side) && side.targets.contains(rule)).applyRules()
    }
    val all = kept.over(parts, Map.empty, Map.empty)
    new DeltaExchange(stratum, all, runnerOf(all, _ => false).combiners, gang).run(Array.emptyDoubleArray, 0)
    parts.map { p =>
      val values = new LongBuffer
      val ids = p.pending.dirty.take(p.pending.dirtySize)
      ids.foreach(p.appendValues(values, p.pending, _))
      LoadedRows(ids, values.trimmed)
    }
  }
}

private[loop] object Shares {
  def reads(rule: RuleSpec, side: SideRows): Boolean = rule.probes.exists(_.index == side.index)

  /** Makes the rows current to which rules with a row of this side may apply. */
  def takeDrivers(stratum: StratumSpec, p: RelationPart, side: SideRows): Unit = {
    val probes = stratum.rules.filter(_.driver.relation == p.index).flatMap(_.probes).filter(_.index == side.index)
    val ids = if (probes.forall(_.aligned)) side.rows.filled else Array.range(0, p.keys.size)
    p.current = if (probes.isEmpty) Array.emptyIntArray else ids.filter(p.isPresent)
    p.currentSize = p.current.length
  }
}
