package org.apache.spark.sql.paralagg.driver

import org.apache.spark.sql.paralagg.codegen.KernelCode
import org.apache.spark.sql.paralagg.gang.SingleTask
import org.apache.spark.sql.paralagg.load.{Block, Dictionary, Routes}
import org.apache.spark.sql.paralagg.loop.{ChangedBase, Checkpoint, EndlessClimb, FixpointLoop, LoadedRows}
import org.apache.spark.sql.paralagg.plan.StratumSpec
import org.apache.spark.sql.paralagg.state.{
  BaseRows, Fold, Hubs, KeptState, LoopBuilder, LoopState, RelationPart, Shape
}
import org.apache.spark.util.CompletionIterator

/** Evaluates all relations by tuples, with dense ids, and leaves the state if the run is to keep it. */
private[driver] final class TupleRun(scope: TaskScope) {
  import scope._
  import scope.job._

  /** Evaluates the inputs; the edges of hubs, if there are any, are spread over all tasks. */
  def withHubs(inputs: TaskInputs, shape: Shape): Iterator[(Int, Array[Byte])] = {
    import inputs._
    val hubs = Hubs.find(stratum, routes, shape, blocks, gang, heavyParts, oneTaskRows)
    hubs.fold(withoutHubs(inputs, shape)) { h =>
      val moved = h.move(blocks, strings, store, new RankedBlocks(h.routes))
      val all = contents ++ h.spec.edges.map { case (from, _) => contents(routes.static(from)) }
      loaded(h.spec.stratum, h.routes, strings, new Shape(h.spec.stratum, h.routes, all), moved, hubs)
    }
  }

  def withoutHubs(inputs: TaskInputs, shape: Shape): Iterator[(Int, Array[Byte])] =
    loaded(stratum, routes, inputs.strings, shape, inputs.blocks, None)

  /** Evaluates base rows over the indexes of an earlier run. */
  def restarted(state: KeptState, inputs: TaskInputs): Iterator[(Int, Array[Byte])] = {
    val loop = state.restarted(stratum, routes, inputs.blocks(_))
    ends("indexes")
    over(stratum, routes, inputs.strings, state.shape, inputs.blocks, loop, None, ", kept indexes")
  }

  private def loaded(
      stratum: StratumSpec, routes: Routes, strings: Dictionary, shape: Shape, rows: Array[Array[Block]],
      hubs: Option[Hubs]): Iterator[(Int, Array[Byte])] = {
    val loop = new LoopBuilder(stratum, routes, shape, gang, strings, memory, rows(_)).build(ends)
    val spread = hubs.fold("")(h => s", edges of ${h.count} hub${if (h.count > 1) "s" else ""} spread")
    over(stratum, routes, strings, shape, rows, loop, hubs, spread)
  }

  private def over(
      stratum: StratumSpec, routes: Routes, strings: Dictionary, shape: Shape, rows: Array[Array[Block]],
      loop: LoopState, hubs: Option[Hubs], placement: String): Iterator[(Int, Array[Byte])] = {
    endLoading()
    ends("waiting")
    if (checkpoint.isEmpty && Fold.fits(stratum, loop, gang, oneTaskRows))
      keeping(loop, shape, folded(strings, shape, loop, rows(routes.base(output)), placement))
    else {
      // A checkpoint does not store which rows are settled, and a run over settled rows takes few iterations.
      val isContinued = stratum.relations.exists(_.settled)
      def initial(p: RelationPart): Option[Array[LoadedRows]] =
        if (routes.initial(p.index) < 0) None
        else Some(rows(routes.initial(p.index)).map(b => LoadedRows(p.ids(b), p.values(b))))
      def fixpoint(traced: Boolean): FixpointLoop = {
        val checkpoints =
          checkpoint.filterNot(_ =>
            traced || loop.indexes.nonEmpty && hubs.isEmpty || stratum.makesStrings || isContinued)
            .map(new Checkpoint(_, job.run, gang, loop.parts))
        new FixpointLoop(
          stratum, loop, new KernelCode(stratum, shape, tasks, ansi, traced), gang, memory, baseRows(loop, rows),
          initial, checkpoints, hubs, rollOverRows)
      }
      val base =
        if (kept.exists(_.keepsBase)) Some(loop.parts.map(p => ChangedBase.rows(p, baseRows(loop, rows)(p))))
        else None
      val result = evaluate(loop, fixpoint, resultOf(loop, strings), placement = placement)
      if (hubs.isEmpty) keeping(loop, shape, result, base) else result
    }
  }

  /** Runs a loop and reports it. Tasks meet before it, and, if only one runs it, `after` it. */
  def evaluate(
      loop: LoopState,
      fixpoint: Boolean => FixpointLoop,
      result: => Iterator[(Int, Array[Byte])],
      after: () => Unit = () => (),
      placement: String = ""): Iterator[(Int, Array[Byte])] = {
    val run = fixpoint(false)
    gang.meet()
    ends("code")
    val loaded = System.nanoTime()
    try if (continues) KeptStates.fitting(run.run()) else run.run()
    catch {
      case climb: EndlessClimb =>
        loop.restartTraced()
        fixpoint(true).trace(climb)
    }
    val looped = System.nanoTime()
    after()
    val rows = result
    val order = if (run.isByValue) "rows, best first" else if (run.isByTarget) "rows, sums by target" else "rows"
    val early = run.earlyExchanges match {
      case 0 => ""
      case n => s", $n early exchange${if (n == 1) "" else "s"}"
    }
    val form = s"$order$placement$early, in ${if (loop.tasks == 1) "one task" else s"${loop.tasks} tasks"}"
    if (gang.part == 0) report(form, run.stats.iterations, run.stats.tuples, run.stats.perIteration, loaded, looped)
    rows
  }

  /** Returns this task's rows of all results. */
  def resultOf(loop: LoopState, strings: Dictionary): Iterator[(Int, Array[Byte])] =
    outputs.indices.iterator.flatMap { at =>
      val p = loop.part(outputs(at))
      placed(at, allResults(at).rows(p, (0 until p.keys.size).iterator, strings, partitions, gang.part, tasks))
    }

  /** Keeps the state once the rows of the result are written, if the run is to leave one. */
  def keeping(
      loop: LoopState, shape: Shape, rows: Iterator[(Int, Array[Byte])], base: Option[Array[BaseRows]] = None)
      : Iterator[(Int, Array[Byte])] =
    kept.flatMap(_.put).filter(_ => restarts || stratum.keepsState && stratum.relations.forall(_.settled)).fold(rows) {
      name =>
        CompletionIterator[(Int, Array[Byte]), Iterator[(Int, Array[Byte])]](
          rows, {
            memory.release() // the same bytes are storage memory from now on
            if (restarts) loop.parts.foreach(_.forgetRows())
            KeptState.of(loop, shape, base, gang.localTasks).foreach(KeptStates.put(name, gang.part, _))
          })
    }

  /** Evaluates the only relation in one task, over the rows of all. */
  private def folded(
      strings: Dictionary, shape: Shape, built: LoopState, base: Array[Block], placement: String)
      : Iterator[(Int, Array[Byte])] = {
    val (fold, loop) = Fold(stratum, built, gang)
    ends("fold")
    val blocks = gang.gather(base)
    val alone = new SingleTask(gang, isWhole = true)
    def rows(p: RelationPart): Array[LoadedRows] = blocks.indices.toArray.flatMap { task =>
      fold.baseIds(task).zip(blocks(task)).map { case (ids, b) => LoadedRows(ids, p.values(b)) }
    }
    def fixpoint(traced: Boolean): FixpointLoop = new FixpointLoop(
      stratum, loop, new KernelCode(stratum, shape, 1, ansi, traced), alone, memory, rows, _ => None, None)
    def result = results.rows(loop.part(0), fold.idsOf(gang.part).iterator, strings, partitions, gang.part, tasks)
    if (gang.part == 0) evaluate(loop, fixpoint, result, () => gang.meet(), placement)
    else {
      gang.meet()
      gang.meet()
      result
    }
  }

  private def baseRows(loop: LoopState, rows: Array[Array[Block]])(p: RelationPart): Array[LoadedRows] =
    loop.baseIds(p.index).zip(rows(routes.base(p.index))).map { case (ids, b) => LoadedRows(ids, p.values(b)) }
}
