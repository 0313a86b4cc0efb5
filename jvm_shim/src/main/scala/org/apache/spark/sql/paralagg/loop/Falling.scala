package org.apache.spark.sql.paralagg.loop

import java.util.BitSet

import org.apache.spark.sql.paralagg.codegen.KernelCode
import org.apache.spark.sql.paralagg.gang.{Gang, WordsCodec}
import org.apache.spark.sql.paralagg.load.LongBuffer
import org.apache.spark.sql.paralagg.plan.{FallsSpec, StratumSpec}
import org.apache.spark.sql.paralagg.state.{
  Accumulator, FallenRows, LoopState, LostRows, RelationPart, RowAddress, SideRows
}
import org.apache.spark.sql.types.{DoubleType, FloatType}

/**
 * The search for the rows of a kept state that may have lost their support: the first half of delete and re-derive
 * (`maintenance/over_delete.py` says which rows fall).
 *
 * The loop's own rules read the values of the rows, and write what they derive beside them. Derived from removed rows,
 * it never is better than a row's value, since the rows are a fixpoint: the best one tells whether the row falls. From
 * the rows that fall, the rules derive more. If the state knows the parent of each row, the children of these rows fall
 * instead, and a removed row of a static side makes a row fall only if it joins the parent of that row.
 */
final class Falling(stratum: StratumSpec, kept: LoopState, falls: FallsSpec, code: KernelCode, gang: Gang) {
  private val parts = kept.parts.map(_.beside)
  private val all = kept.over(parts, Map.empty, Map.empty)
  private val runner = runnerOf(all, _ => true)
  private val exchange = new DeltaExchange(stratum, all, runner.combiners, gang)
  private val fallen = parts.map(_ => new BitSet)
  private val byParents = falls.byParents && parts.forall(_.isTraced)

  /** Returns the rows that fall; None if they are too many. `base` are removed base rows. Collective. */
  def search(rows: Seq[LostRows], base: RelationPart => Array[LoadedRows]): Option[FallenRows] = {
    val lost = rows.map(_.side)
    parts.foreach(p => runner.put(p, p.pending, base(p)))
    lost.foreach { l =>
      val over = kept.over(parts, Map(l.index -> l.rows), l.targets)
      parts.foreach(Shares.takeDrivers(stratum, _, l))
      runnerOf(over, rule => Shares.reads(stratum.rules(rule), l) && !isDirect(rule, l)).applyRules()
    }
    exchange.run(Array.emptyDoubleArray, 0)
    parts.foreach(takeFallen)
    val count = if (byParents) childrenFall(lost) else derivedFall()
    kept.parts.foreach(p => p.shareGhosts(parts(p.index)))
    parts.foreach(p => fallen(p.index).stream().forEach(copyRow(p, _)))
    parts.foreach(p => p.state = p.pending) // of the rows that fell it has the values
    if (count > falls.most) None
    else Some(new FallenRows(kept.parts, parts, fallen.map(_.stream().toArray), count > 0))
  }

  /** Lets rows fall that rules derive from fallen ones. Returns their number in all tasks. */
  private def derivedFall(): Long = {
    var count = 0L
    var isActive = true
    while (isActive) {
      val fell = gang.allreduce(Array(parts.map(_.currentSize).sum.toDouble))(0).toLong
      count += fell
      isActive = fell > 0 && count <= falls.most
      if (isActive) {
        runner.applyRules()
        exchange.run(Array.emptyDoubleArray, 0)
        parts.foreach(takeFallen)
      }
      gang.check()
    }
    count
  }

  /** Lets rows fall whose parents a lost row has joined, and the children of fallen rows. Returns their number. */
  private def childrenFall(lost: Seq[SideRows]): Long = {
    val Array(part) = parts
    val remote = Array.fill(gang.tasks)(new LongBuffer)
    for (l <- lost; rule <- stratum.rules.indices if isDirect(rule, l); driver <- l.rows.filled) {
      val address = RowAddress.of(part.index, gang.part, driver)
      (l.rows.offsets(driver) until l.rows.offsets(driver + 1)).foreach { row =>
        val target = l.targets(rule).int(row)
        if (target >= 0) fallIfChild(part, target, address)
        else if (part.ghostRemote(~target) >= 0) {
          remote(part.ghostOwner(~target)).add(part.ghostRemote(~target))
          remote(part.ghostOwner(~target)).add(address)
        }
      }
    }
    val (in, _) = gang.exchange(remote.map(_.trimmed), WordsCodec, Array.emptyDoubleArray)
    in.foreach(words => if (words != null) words.grouped(2).foreach(w => fallIfChild(part, w(0).toInt, w(1))))
    new ParentTree(part, gang).fall(fallen(part.index), falls.most)
  }

  private def fallIfChild(p: RelationPart, id: Int, parent: Long): Unit =
    if (id < p.state.capacity && p.isPresent(id) && p.state.parents(id) == parent) fallen(p.index).set(id)

  /** Tests whether a lost row determines the driver's row and the target of a rule, so that parents decide. */
  private def isDirect(rule: Int, lost: SideRows): Boolean = {
    val r = stratum.rules(rule)
    byParents && r.isAlongRows && r.resolvingProbe.index == lost.index
  }

  private def runnerOf(loop: LoopState, applies: Int => Boolean) =
    new Runner(stratum, loop, code, () => gang.check(), applies)

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
        p.current(p.currentSize) = id
        p.currentSize += 1
      }
      i += 1
    }
  }

  /** Tests whether the best derived row supports row `id`; a null counts as the same value. */
  private def supports(p: RelationPart, id: Int): Boolean = {
    val (by, row, derived) = (falls.by(p.index), p.state, p.pending)
    def hasNull = row.valid(by) != null && (row.valid(by)(id) == 0 || derived.valid(by)(id) == 0)
    by < 0 || hasNull || isSame(p, row.columns(by)(id), derived.columns(by)(id))
  }

  private def isSame(p: RelationPart, old: Long, derived: Long): Boolean = {
    def isNear(a: Double, b: Double) =
      a == b || a.isNaN && b.isNaN || math.abs(a - b) <= math.abs(a) * falls.tolerance(p.index)
    old == derived || (p.spec.dependents(falls.by(p.index)).column.dataType match {
      case DoubleType => isNear(java.lang.Double.longBitsToDouble(old), java.lang.Double.longBitsToDouble(derived))
      case FloatType => isNear(java.lang.Float.intBitsToFloat(old.toInt), java.lang.Float.intBitsToFloat(derived.toInt))
      case _ => false
    })
  }

  /** Gives a fallen row in `pending` the values that it had. */
  private def copyRow(p: RelationPart, id: Int): Unit = {
    p.pending.flags(id) = (p.pending.flags(id) | Accumulator.Present).toByte
    p.state.columns.indices.foreach { j =>
      p.pending.columns(j)(id) = p.state.columns(j)(id)
      if (p.state.valid(j) != null) p.pending.valid(j)(id) = p.state.valid(j)(id)
    }
  }
}
