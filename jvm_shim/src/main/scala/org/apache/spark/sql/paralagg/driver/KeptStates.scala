package org.apache.spark.sql.paralagg.driver

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.scheduler.TaskLocation
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.codegen.SumOverflow
import org.apache.spark.sql.paralagg.loop.EndlessClimb
import org.apache.spark.sql.paralagg.state.KeptState
import org.apache.spark.storage.{RDDBlockId, StorageLevel}

/**
 * The states that tasks keep for a later run: a block a task in Spark's block manager, which counts it as storage
 * memory, evicts it if that is needed for something else, and knows where it is. A run takes the blocks of one name and
 * leaves those of another. So a name has the state of one version, or no state; runs that fail leave none.
 */
private[paralagg] object KeptStates {

  /** Returns a new name, the id of no RDD. */
  def name(sc: SparkContext): Int = sc.newRddId()

  def put(name: Int, task: Int, state: KeptState): Unit =
    SparkEnv.get.blockManager.putSingle(RDDBlockId(name, task), state, StorageLevel.MEMORY_ONLY)

  /** Removes and returns the state of a task; None if this executor has it no more. */
  def take(name: Int, task: Int): Option[KeptState] = {
    val blocks = SparkEnv.get.blockManager
    blocks.getLocalValues(RDDBlockId(name, task)).map { found =>
      val state = found.data.toList.head.asInstanceOf[KeptState] // reads to the end, which releases the block's lock
      blocks.removeBlock(RDDBlockId(name, task))
      state
    }
  }

  def locations(sc: SparkContext, name: Int, task: Int): Seq[String] =
    sc.env.blockManager.master.getLocations(RDDBlockId(name, task)).map(b =>
      TaskLocation(b.host, b.executorId).toString)

  /** Tests whether executors have all states of a gang of so many tasks. */
  def hasAll(sc: SparkContext, name: Int, tasks: Int): Boolean = count(sc, name, tasks) == tasks

  private def count(sc: SparkContext, name: Int, tasks: Int): Int =
    (0 to tasks).count(locations(sc, name, _).nonEmpty)

  /** Throws if executors have not all states of a gang of so many tasks. */
  def check(sc: SparkContext, name: Int, tasks: Int): Unit = {
    val found = count(sc, name, tasks)
    if (found != tasks) throw lost(s"executors have the states of $found tasks, and the run has $tasks")
  }

  def free(sc: SparkContext, name: Int): Unit = sc.env.blockManager.master.removeRdd(name, blocking = false)

  def lost(why: String) = new ParalaggException(
    ErrorCodes.KeptState, s"the kept state of the last run cannot be used: $why.", "run it from the stored rows.")

  /** Does work over a kept state, which does not fit if values climb or overflow: a run of all rows has the last word. */
  def fitting[T](work: => T): T =
    try work
    catch {
      case _: EndlessClimb => throw lost("values climb endlessly")
      case _: SumOverflow => throw lost("a sum overflows")
    }
}
