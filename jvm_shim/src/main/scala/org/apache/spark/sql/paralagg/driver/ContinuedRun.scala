package org.apache.spark.sql.paralagg.driver

import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.codegen.KernelCode
import org.apache.spark.sql.paralagg.load.Block
import org.apache.spark.sql.paralagg.loop.{ChangedBase, Falling, FixpointLoop, LoadedRows, Shares}
import org.apache.spark.sql.paralagg.state.{FallenRows, GrownState, KeptState, ReappliedRows, RelationPart}

/** A run that goes on from the `state` of an earlier one, whose rows are settled, with changed rows of the inputs. */
private[driver] final class ContinuedRun(scope: TaskScope, byTuples: TupleRun, state: KeptState) {
  import scope._
  import scope.job._

  private val parts = state.loop.parts
  private val strings = state.loop.strings

  /** Evaluates over changed rows of the inputs, by route. */
  def over(rows: Array[Array[Block]]): Iterator[(Int, Array[Byte])] = {
    val grown = new GrownState(stratum, routes, state, gang, strings, rows(_))
    if (isAnywhere(grown.missing > 0)) throw KeptStates.lost("it does not have all deleted rows")
    val derivesAll = derivesAllAgain
    val code = new KernelCode(stratum, state.shape, tasks, ansi, derivesAll || parts.exists(_.isTraced))
    val restarted = if (derivesAll) Some(FallenRows.restart(parts)) else None
    val base = new ChangedBase(parts, kept.get.base, state.base, rows, routes, adds = stratum.isAccumulating)
    if (isAnywhere(base.isMissing)) throw KeptStates.lost("it does not have all deleted base rows")
    val fallen = restarted.orElse(kept.flatMap(_.falls).map { f =>
      KeptStates.fitting(new Falling(stratum, state.loop, f, code, gang).search(grown.lost, base.removed)).getOrElse(
        throw new ParalaggException(ErrorCodes.ManyFall, s"more than ${f.most} rows fall.", "run it in full."))
    }).getOrElse(FallenRows.none(parts))
    // Under sums, values may change and become what they were.
    val before =
      if (stratum.isAccumulating) parts.map(p => new ReappliedRows(p, p.presentIds)) else fallen.derivedAgain
    ends("fallen")
    val loop = grown.build(fallen.ids, fallen.isAny)
    ends("indexes")
    endLoading()
    ends("waiting")
    val shares =
      if (!stratum.isAccumulating) parts.map(_ => Array.empty[LoadedRows])
      else KeptStates.fitting(new Shares(stratum, loop, code, gang).along(grown.shares)).map(Array(_))
    def starts(p: RelationPart) = base.starts(p, fallen.ids) ++ shares(p.index)
    def fixpoint(traced: Boolean): FixpointLoop = new FixpointLoop(
      stratum, loop, code, gang, memory, starts, _ => None, None, None, rollOverRows, Some(grown.reapplied),
      before)
    def result = byTuples.resultOf(loop, strings) ++ goneOf(fallen)
    val placement = if (derivesAll) ", again from the kept state" else ", from the kept state"
    byTuples.keeping(loop, state.shape, byTuples.evaluate(loop, fixpoint, result, placement = placement), base.toKeep)
  }

  /**
   * Tests whether all rows are derived again, which costs no more than the loop of a full run: then each row has its
   * parent, and later runs know which rows fall. Nulls would need more than one parent.
   */
  private def derivesAllAgain: Boolean =
    kept.exists(k => k.hasAllBase && k.falls.exists(_.byParents)) &&
      !parts.exists(p => p.isTraced || p.shape.dependents.contains(true))

  /** Returns the rows that leave the result. */
  private def goneOf(fallen: FallenRows): Iterator[(Int, Array[Byte])] =
    if (!removes) Iterator.empty
    else {
      val gone = fallen.gone
      outputs.indices.iterator.flatMap { at =>
        val (p, ids) = gone(outputs(at))
        placed(at, allResults(at).all(p, ids, strings, partitions, gang.part, tasks, flag = true))
      }
    }
}
