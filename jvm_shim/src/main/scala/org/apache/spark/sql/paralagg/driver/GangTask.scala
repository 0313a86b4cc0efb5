package org.apache.spark.sql.paralagg.driver

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.{BarrierTaskContext, TaskContext, TaskKilledException}
import org.apache.spark.shuffle.FetchFailedException
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.codegen.{KernelCode, SumOverflow}
import org.apache.spark.sql.paralagg.gang.{
  BarrierGang, Codec, Gang, GangAborted, GangEnd, GangKey, GangStopped, MemoryAccount, SingleTask
}
import org.apache.spark.sql.paralagg.load.{
  Block, BlocksCodec, BlockStore, Dictionary, LocalDictionary, Route, Routes, SortedTexts, Strings, Texts
}
import org.apache.spark.sql.paralagg.loop.{
  BitRowsLoop, BitmapLoop, Checkpoint, CheckpointConf, Decomposed, ChangedBase, EndlessClimb, Falling, FixpointLoop,
  LoadedRows, Shares
}
import org.apache.spark.sql.paralagg.plan.{KeptSpec, StratumSpec}
import org.apache.spark.sql.paralagg.state.{
  BaseRows, BitRowsEdges, BitmapEdges, FallenRows, Fold, GrownState, Hubs, KeptState, LoopBuilder, LoopState,
  ReappliedRows, RelationPart, RouteContents, Shape
}
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.CompletionIterator

/** The description of a gang's job in each task's closure: run, Plan, placement of the result. */
case class GangJob(
    run: Long,
    stratum: StratumSpec,
    outputs: Array[Int],
    tasks: Int,
    partitions: Int,
    ansi: Boolean,
    blockSpace: Long,
    direct: Boolean,
    checkpoint: Option[CheckpointConf],
    oneTaskRows: Long,
    heavyParts: Int,
    rollOverRows: Long,
    kept: Option[KeptSpec]) {
  lazy val routes: Routes = Routes.of(stratum)
  def inputTypes: Map[Int, Array[DataType]] = stratum.inputs.map(i => i.id -> i.exprs.map(_.dataType)).toMap
}

/** One task of the gang: it loads, loops and returns blocks of the result. A retried stage starts with new state. */
final class GangTask(job: GangJob, context: TaskContext) {
  import job._

  GangTask.checkWhole(context, tasks)

  private val removes = kept.exists(_.falls.isDefined)
  private val restarts = kept.exists(_.restarts)
  private val continues = kept.exists(k => k.take.isDefined && !k.restarts)
  private val allResults = outputs.map(o => new ResultBlocks(stratum.relations(o), removes))

  /** The only relation, in forms of evaluation for one. */
  private val output = outputs.head
  private val results = allResults.head
  private val memory = new MemoryAccount(context) // before the gang, which meets when it is made
  private val gang =
    new BarrierGang(GangKey(job.run, context.stageAttemptNumber()), context.partitionId(), tasks, blockSpace, context)
  private val store = new BlockStore(context)
  private var spilledBytes = 0.0 // of all tasks, as mappedBytes
  private var mappedBytes = 0.0
  private val began = System.nanoTime()
  private val parts = mutable.LinkedHashMap.empty[String, Double]
  private var partBegan = began

  /** Ends a part of loading, for the report. */
  private def ends(part: String): Unit = {
    val now = System.nanoTime()
    parts(part) = parts.getOrElse(part, 0.0) + (now - partBegan) / 1e9
    partBegan = now
  }

  /**
   * Runs the task. `load` returns its blocks (by task if it reads the inputs itself) and their strings. It calls the
   * function that it gets at least every few milliseconds, with the strings read so far.
   */
  def run(load: GangTask.Load): Iterator[(Int, Array[Byte])] = {
    context.addTaskCompletionListener[Unit] { _ =>
      if (context.isFailed() || context.isInterrupted()) gang.abort("a task of the gang failed or was cancelled")
      gang.leave()
      memory.release()
      store.close()
    }
    try compute(load)
    catch {
      case e: Throwable =>
        // Peers read blocks of this store: they learn of the error before it is closed, or they would return another one.
        // It is closed before the result is written: the disk may be full.
        try failed(e)
        finally store.close()
    }
  }

  /** Returns the error as the task's result, unless a peer does or Spark is to see it. */
  private def failed(error: Throwable): Iterator[(Int, Array[Byte])] = error match {
    case e @ (_: GangAborted | _: TaskKilledException | _: FetchFailedException) => throw e
    case _: GangStopped => Iterator.empty
    case NonFatal(e) if context.isInterrupted() => throw e
    case NonFatal(_) if gang.isStopped => Iterator.empty // it follows from the peer's error
    case NonFatal(e) =>
      gang.abort(GangEnd.stopped(e.toString))
      results.error(e, partitions * outputs.length)
    case e: OutOfMemoryError =>
      gang.abort(GangEnd.stopped(e.toString))
      results.error(GangTask.outOfMemory(e), partitions * outputs.length)
    case e => throw e
  }

  private def compute(load: GangTask.Load): Iterator[(Int, Array[Byte])] = {
    def check(strings: LocalDictionary): Unit = {
      gang.check()
      memory.holdStrings(strings.bytes)
    }
    def loaded(state: Option[KeptState]): (Dictionary, Array[RouteContents], Array[Array[Block]]) = {
      val (packed, dictionary) = Gang.within(gang)(load(store, check, state.isEmpty))
      ends("reading")
      val strings = intern(packed, dictionary, state.map(_.loop.strings))
      ends("strings")
      val blocks = distribute(packed)
      ends("exchange")
      (strings, contentsOf(blocks), blocks)
    }
    def inWhole(): Iterator[(Int, Array[Byte])] = {
      val (strings, contents, blocks) = loaded(None)
      whole(strings, contents, blocks)
    }
    kept.flatMap(_.take).flatMap(taken).fold(inWhole()) { state =>
      val (strings, contents, blocks) = loaded(Some(state))
      val unfit = state.unfit(contents, routes)
      if (!restarts) {
        unfit.foreach(why => throw KeptStates.lost(why))
        continued(state, blocks)
      } else if (unfit.isDefined) inWhole()
      else {
        val loop = state.restarted(stratum, routes, blocks(_))
        ends("indexes")
        overTuples(stratum, routes, strings, state.shape, blocks, loop, None, ", kept indexes")
      }
    }
  }

  /** Evaluates in the form that Plan and data allow. */
  private def whole(
      strings: Dictionary, contents: Array[RouteContents], blocks: Array[Array[Block]])
      : Iterator[(Int, Array[Byte])] = {
    val shape = new Shape(stratum, routes, contents)
    val hasNullKeys = shape.relations.exists(_.hasNullKeys)
    if (stratum.bitmap.isDefined && !hasNullKeys) bitmaps(strings, blocks)
    else if (stratum.bitRows.isDefined && !hasNullKeys && stratum.endsAt.isEmpty)
      bitRows(strings, blocks).getOrElse(tuples(stratum, routes, strings, shape, blocks, None))
    else if (Decomposed.fits(stratum, routes, shape, blocks(_), gang)) decomposed(strings, contents, blocks)
    else {
      val hubs = Hubs.find(stratum, routes, shape, blocks, gang, heavyParts, oneTaskRows)
      hubs.fold(tuples(stratum, routes, strings, shape, blocks, None)) { h =>
        val moved = h.move(blocks, strings, store, new GangTask.RankedBlocks(h.routes))
        val all = contents ++ h.spec.edges.map { case (from, _) => contents(routes.static(from)) }
        tuples(h.spec.stratum, h.routes, strings, new Shape(h.spec.stratum, h.routes, all), moved, hubs)
      }
    }
  }

  /** Evaluates the relation for one value of its carried keys at a time; encodes its rows at once. */
  private def decomposed(
      strings: Dictionary, contents: Array[RouteContents], blocks: Array[Array[Block]])
      : Iterator[(Int, Array[Byte])] = {
    val loop = new Decomposed(stratum, routes, blocks(_), contents, strings, ansi, gang, memory)
    endLoading()
    val loaded = System.nanoTime()
    val out = results.decomposed(stratum.decomposition.get.carried, strings, partitions)
    loop.run(out.add)
    if (gang.part == 0)
      report("one carried value at a time", loop.iterations, loop.tuples, Nil, loaded, System.nanoTime())
    out.blocks
  }

  /** Evaluates all relations by tuples, with dense ids. */
  private def tuples(
      stratum: StratumSpec, routes: Routes, strings: Dictionary, shape: Shape, rows: Array[Array[Block]],
      hubs: Option[Hubs]): Iterator[(Int, Array[Byte])] = {
    val loop = new LoopBuilder(stratum, routes, shape, gang, strings, memory, rows(_)).build(ends)
    val spread = hubs.fold("")(h => s", edges of ${h.count} hub${if (h.count > 1) "s" else ""} spread")
    overTuples(stratum, routes, strings, shape, rows, loop, hubs, spread)
  }

  private def overTuples(
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

  /** Returns this task's part of the state with this name, which no other run gets from then on. */
  private def taken(name: Int): Option[KeptState] = {
    val found = KeptStates.take(name, gang.part)
    if (!isAnywhere(found.isEmpty)) found
    else if (restarts) None
    else throw KeptStates.lost("an executor has evicted its part")
  }

  /** Evaluates over the state of an earlier run, whose rows are settled, and changed rows of the inputs. */
  private def continued(state: KeptState, rows: Array[Array[Block]]): Iterator[(Int, Array[Byte])] = {
    val strings = state.loop.strings
    val parts = state.loop.parts
    val grown = new GrownState(stratum, routes, state, gang, strings, rows(_))
    if (isAnywhere(grown.missing > 0)) throw KeptStates.lost("it does not have all deleted rows")
    val restarts = mayRestart(parts)
    val code = new KernelCode(stratum, state.shape, tasks, ansi, restarts || parts.exists(_.isTraced))
    val restarted = if (restarts) Some(FallenRows.restart(parts)) else None
    val base = new ChangedBase(parts, kept.get.base, state.base, rows, routes, adds = stratum.isAccumulating)
    if (isAnywhere(base.isMissing)) throw KeptStates.lost("it does not have all deleted base rows")
    val fallen = restarted.orElse(kept.flatMap(_.falls).map { f =>
      fitting(new Falling(stratum, state.loop, f, code, gang).search(grown.lost, base.removed)).getOrElse(
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
      else fitting(new Shares(stratum, loop, code, gang).along(grown.shares)).map(Array(_))
    def starts(p: RelationPart) = base.starts(p, fallen.ids) ++ shares(p.index)
    def fixpoint(traced: Boolean): FixpointLoop = new FixpointLoop(
      stratum, loop, code, gang, memory, starts, _ => None, None, None, rollOverRows, Some(grown.reapplied),
      before)
    def result = resultOf(loop, strings) ++ goneOf(fallen, strings)
    val placement = if (restarts) ", again from the kept state" else ", from the kept state"
    keeping(loop, state.shape, evaluate(loop, fixpoint, result, placement = placement), base.toKeep)
  }

  /**
   * Tests whether all rows are derived again, which costs no more than the loop of a full run: then each row has its
   * parent, and later runs know which rows fall. Nulls would need more than one parent.
   */
  private def mayRestart(parts: Array[RelationPart]): Boolean =
    kept.exists(k => k.hasAllBase && k.falls.exists(_.byParents)) &&
      !parts.exists(p => p.isTraced || p.shape.dependents.contains(true))

  /** Does work over a kept state, which does not fit if values climb or overflow: a run of all rows has the last word. */
  private def fitting[T](work: => T): T =
    try work
    catch {
      case _: EndlessClimb => throw KeptStates.lost("values climb endlessly")
      case _: SumOverflow => throw KeptStates.lost("a sum overflows")
    }

  /** Tests whether the condition holds in any task. */
  private def isAnywhere(condition: Boolean): Boolean = gang.allreduce(Array(if (condition) 1.0 else 0.0))(0) > 0

  /** Returns the rows that leave the result. */
  private def goneOf(fallen: FallenRows, strings: Dictionary): Iterator[(Int, Array[Byte])] =
    if (!removes) Iterator.empty
    else {
      val gone = fallen.gone
      outputs.indices.iterator.flatMap { at =>
        val (p, ids) = gone(outputs(at))
        placed(at, allResults(at).all(p, ids, strings, partitions, gang.part, tasks, flag = true))
      }
    }

  private def baseRows(loop: LoopState, rows: Array[Array[Block]])(p: RelationPart): Array[LoadedRows] =
    loop.baseIds(p.index).zip(rows(routes.base(p.index))).map { case (ids, b) => LoadedRows(ids, p.values(b)) }

  private def resultOf(loop: LoopState, strings: Dictionary): Iterator[(Int, Array[Byte])] =
    outputs.indices.iterator.flatMap { at =>
      val p = loop.part(outputs(at))
      placed(at, allResults(at).rows(p, (0 until p.keys.size).iterator, strings, partitions, gang.part, tasks))
    }

  /** Keeps the state once the rows of the result are written, if the run is to leave one. */
  private def keeping(
      loop: LoopState, shape: Shape, rows: Iterator[(Int, Array[Byte])], base: Option[Array[BaseRows]] = None)
      : Iterator[(Int, Array[Byte])] =
    kept.flatMap(_.put).filter(_ => restarts || KeptState.fits(stratum)).fold(rows) { name =>
      CompletionIterator[(Int, Array[Byte]), Iterator[(Int, Array[Byte])]](
        rows, {
          memory.release() // the same bytes are storage memory from now on
          if (restarts) loop.parts.foreach(_.forgetRows())
          KeptState.of(loop, shape, base, gang.localTasks).foreach(KeptStates.put(name, gang.part, _))
        })
    }

  /** Places blocks of a relation behind those of the outputs before it. */
  private def placed(at: Int, blocks: Iterator[(Int, Array[Byte])]): Iterator[(Int, Array[Byte])] =
    blocks.map { case (target, bytes) => (at * partitions + target, bytes) }

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

  /** Waits for all tasks; the rows that the state holds no longer need memory as blocks. */
  private def endLoading(): Unit = {
    val sums = gang.allreduce(Array(store.spilledBytes.toDouble, memory.mappedBytes.toDouble))
    spilledBytes = sums(0)
    mappedBytes = sums(1)
    store.shrink()
    context.taskMetrics().incDiskBytesSpilled(store.spilledBytes)
  }

  /** Runs a loop and reports it. Tasks meet before it, and, if only one runs it, `after` it. */
  private def evaluate(
      loop: LoopState,
      fixpoint: Boolean => FixpointLoop,
      result: => Iterator[(Int, Array[Byte])],
      after: () => Unit = () => (),
      placement: String = ""): Iterator[(Int, Array[Byte])] = {
    val run = fixpoint(false)
    gang.meet()
    ends("code")
    val loaded = System.nanoTime()
    try if (continues) fitting(run.run()) else run.run()
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

  /** Evaluates a set relation with a carried key by bitmaps; encodes each block at once. */
  private def bitmaps(strings: Dictionary, blocks: Array[Array[Block]]): Iterator[(Int, Array[Byte])] = {
    val edges = gang.once(BitmapEdges.build(stratum.bitmap.get.edges.flatMap(i => blocks(routes.static(i)))))
    val loop =
      new BitmapLoop(stratum.bitmap.get.moving, edges, blocks(routes.base(output)), gang, memory, stratum.endsAt)
    endLoading()
    val loaded = System.nanoTime()
    val out = mutable.ArrayBuffer.empty[(Int, Array[Byte])]
    loop.run(b =>
      out ++= results.bitmaps(b, stratum.bitmap.get.moving, strings, partitions, gang.part, tasks == partitions))
    if (gang.part == 0) report("bitmaps", loop.iterations, loop.pairs, Nil, loaded, System.nanoTime())
    out.iterator
  }

  /** Evaluates sets in rows of bits; encodes each block at once. None if the rows are too many. */
  private def bitRows(
      strings: Dictionary, blocks: Array[Array[Block]]): Option[Iterator[(Int, Array[Byte])]] = {
    val form = stratum.bitRows.get
    val bases = stratum.relations.indices.map(r => blocks(routes.base(r))).toArray
    val edges = BitRowsEdges.build(form, bases, index => blocks(routes.static(index)), gang)
    BitRowsLoop.load(form, edges, bases, gang, memory).map { loop =>
      endLoading()
      val loaded = System.nanoTime()
      val out = mutable.ArrayBuffer.empty[(Int, Array[Byte])]
      loop.run()
      outputs.indices.foreach { at =>
        loop.rows(outputs(at)) { b =>
          val moving = 1 - form.carried(outputs(at))
          out ++= placed(
            at, allResults(at).bitmaps(b, moving, strings, partitions, gang.part, tasks == partitions))
        }
      }
      if (gang.part == 0) report("rows of bits", loop.iterations, loop.pairs, Nil, loaded, System.nanoTime())
      out.iterator
    }
  }

  /** Replaces words of strings by those of the dictionary: that of an earlier run, or one of the ranks of all strings. */
  private def intern(
      packed: Array[Array[Block]], dictionary: LocalDictionary, before: Option[Dictionary]): Dictionary = {
    val hasStrings = routes.all.exists(_.stringColumns.nonEmpty)
    // If strings may come later, the word 0, which is stored with a null, must not be one of them.
    if (stratum.makesStrings || hasStrings && kept.isDefined) dictionary.add(UTF8String.EMPTY_UTF8)
    if (!stratum.makesStrings && !hasStrings)
      before.getOrElse(new Dictionary(new SortedTexts(Array.empty), mappedBytes = 0))
    else {
      val (strings, words) = before match {
        case Some(strings) =>
          val words = Strings.append(dictionary, strings, gang)
          memory.holdStrings(strings.bytes / gang.localTasks)
          (strings, words)
        case None =>
          Strings.rank(dictionary, gang, MemoryAccount.mayMap, bytes => memory.holdStrings(bytes / gang.localTasks))
      }
      if (strings.mappedBytes > 0) {
        memory.holdStrings(0)
        memory.mappedBytes += strings.mappedBytes / gang.localTasks
      }
      packed.foreach(_.foreach(b => routes.all(b.route).stringColumns.foreach(b.rank(_, words))))
      strings
    }
  }

  /** Returns this task's blocks by route, after an exchange if tasks read the inputs themselves. */
  private def distribute(packed: Array[Array[Block]]): Array[Array[Block]] = {
    val codec = new GangTask.RankedBlocks(routes)
    val received: Array[Block] =
      if (!direct) packed.flatten
      else gang.exchange(packed, codec, Array.emptyDoubleArray)._1.flatten
    routes.all.map { route =>
      val rows = received.filter(b => b.route == route.id && b.rows > 0)
      if (route.everywhere) gang.allgather(rows, codec).flatten else rows
    }
  }

  /** Returns the contents of each route's columns over all tasks; the width only of columns that a loop reads. */
  private def contentsOf(blocks: Array[Array[Block]]): Array[RouteContents] = {
    val read = stratum.staticIndexes.flatMap { i =>
      (routes.static(i.id) +: routes.removed.get(i.id).toSeq).map(_ -> i.read.map(_ + i.keys.length))
    }.toMap
    def flag(route: Route)(holds: Int => Boolean) = route.columns.indices.map(c => if (holds(c)) 1.0 else 0.0)
    val flags = routes.all.flatMap { r =>
      val reads = read.getOrElse(r.id, Array.emptyIntArray)
      flag(r)(c => blocks(r.id).exists(_.nulls(c) != null)) ++
        flag(r)(c => !reads.contains(c) || !blocks(r.id).forall(_.isNarrow(c)))
    }
    val sums = gang.allreduce(flags).iterator
    routes.all.map { r =>
      val nulls = r.columns.map(_ => sums.next() > 0)
      RouteContents(nulls, r.columns.map(_ => sums.next() == 0))
    }
  }

  private def report(
      form: String, iterations: Int, tuples: Long, perIteration: Seq[String], loaded: Long, looped: Long): Unit = {
    val loading = parts.map { case (name, seconds) => s""""$name":$seconds""" }.mkString(",")
    val end = stratum.endsAt.fold("")(rows => s", ends at $rows rows (LIMIT)")
    val Seq(load, loop, store) = Seq(loaded - began, looped - loaded, System.nanoTime() - looped).map(_ / 1e9)
    gang.report(
      s"""{"backend":"spark","form":"$form$end","parts":{$loading},"iterations":$iterations,"tuples":$tuples,"tasks":$tasks,""" +
        s""""spilled":${spilledBytes.toLong},"mapped":${mappedBytes.toLong},""" +
        s""""seconds":{"load":$load,"loop":$loop,"store":$store},"per_iteration":[${perIteration.mkString(",")}]}""")
  }
}

object GangTask {

  /** Reads the inputs: all of them, or those alone that are no index of a kept state. */
  type Load = (BlockStore, LocalDictionary => Unit, Boolean) => (Array[Array[Block]], LocalDictionary)

  /**
   * Fails if Spark launched only a part of the gang again. It does so if a task succeeded after a peer failed, since
   * the task's output is registered. The others would wait for ever; a failure makes Spark drop that output and launch
   * all.
   */
  private[paralagg] def checkWhole(context: TaskContext, tasks: Int): Unit = context match {
    case b: BarrierTaskContext if b.getTaskInfos().length != tasks =>
      throw new GangAborted(
        s"${b.getTaskInfos().length} of the gang's $tasks tasks were launched again; it starts as a whole")
    case _ =>
  }

  /** The codec of blocks whose string words are ranks: it sends no strings. */
  private final class RankedBlocks(routes: Routes) extends Codec[Array[Block]] {
    private val plain = new BlocksCodec(routes.all.map(_.copy(types = Array.empty)))
    override def encode(blocks: Array[Block]): Array[Byte] = plain.encode(blocks, new Texts)
    override def decode(bytes: Array[Byte]): Array[Block] = plain.decode(bytes)._1
  }

  private def outOfMemory(e: OutOfMemoryError) = new org.apache.spark.sql.paralagg.ParalaggException(
    ErrorCodes.OutOfMemory,
    s"the heap of ${Runtime.getRuntime.maxMemory >> 20} MiB is full (${e.getMessage}).",
    "give executors more memory (spark.executor.memory; spark.driver.memory under local[N]).")
}
