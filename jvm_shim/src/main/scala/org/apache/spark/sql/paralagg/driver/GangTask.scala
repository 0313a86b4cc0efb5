package org.apache.spark.sql.paralagg.driver

import scala.util.control.NonFatal

import org.apache.spark.{BarrierTaskContext, TaskContext, TaskKilledException}
import org.apache.spark.shuffle.FetchFailedException
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.gang.{GangAborted, GangEnd, GangStopped}
import org.apache.spark.sql.paralagg.load.{Block, BlockStore, LocalDictionary}
import org.apache.spark.sql.paralagg.loop.Decomposed
import org.apache.spark.sql.paralagg.state.{KeptState, Shape}

/** One task of the gang: it loads, loops and returns blocks of the result. A retried stage starts with new state. */
final class GangTask(job: GangJob, context: TaskContext) {
  import job._

  GangTask.checkWhole(context, tasks)

  private val scope = new TaskScope(job, context)
  private val byTuples = new TupleRun(scope)
  import scope.{gang, memory, results, store}

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
    val loading = new InputLoading(scope, load)
    kept.flatMap(_.take).flatMap(taken).fold(whole(loading.inputs(None))) { state =>
      val inputs = loading.inputs(Some(state))
      val unfit = state.unfit(inputs.contents, routes)
      if (!scope.restarts) {
        unfit.foreach(why => throw KeptStates.lost(why))
        new ContinuedRun(scope, byTuples, state).over(inputs.blocks)
      } else if (unfit.isDefined) whole(loading.inputs(None))
      else byTuples.restarted(state, inputs)
    }
  }

  /** Evaluates in the form that Plan and data allow. */
  private def whole(inputs: TaskInputs): Iterator[(Int, Array[Byte])] = {
    val shape = new Shape(stratum, routes, inputs.contents)
    val hasNullKeys = shape.relations.exists(_.hasNullKeys)
    val others = new OtherForms(scope, inputs)
    if (stratum.bitmap.isDefined && !hasNullKeys) others.bitmaps
    else if (stratum.bitRows.isDefined && !hasNullKeys && stratum.endsAt.isEmpty)
      others.bitRows.getOrElse(byTuples.withoutHubs(inputs, shape))
    else if (Decomposed.fits(stratum, routes, shape, inputs.blocks(_), gang)) others.decomposed
    else byTuples.withHubs(inputs, shape)
  }

  /** Returns this task's part of the state with this name, which no other run gets from then on. */
  private def taken(name: Int): Option[KeptState] = {
    val found = KeptStates.take(name, gang.part)
    if (!scope.isAnywhere(found.isEmpty)) found
    else if (scope.restarts) None
    else throw KeptStates.lost("an executor has evicted its part")
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

  private def outOfMemory(e: OutOfMemoryError) = new ParalaggException(
    ErrorCodes.OutOfMemory,
    s"the heap of ${Runtime.getRuntime.maxMemory >> 20} MiB is full (${e.getMessage}).",
    "give executors more memory (spark.executor.memory; spark.driver.memory under local[N]).")
}
