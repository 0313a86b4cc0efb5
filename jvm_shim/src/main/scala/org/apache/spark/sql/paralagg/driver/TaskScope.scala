package org.apache.spark.sql.paralagg.driver

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.paralagg.gang.{BarrierGang, GangKey, MemoryAccount}
import org.apache.spark.sql.paralagg.load.BlockStore

/** What all parts of one task of a gang share: peers, memory, files, the blocks of its results, and its report. */
private[driver] final class TaskScope(val job: GangJob, context: TaskContext) {
  import job._

  /** Whether the run starts again over the indexes of an earlier one. */
  val restarts: Boolean = kept.exists(_.restarts)

  /** Whether the run goes on from the rows of an earlier one. */
  val continues: Boolean = kept.exists(k => k.take.isDefined && !k.restarts)

  /** Whether the result has rows that leave, too. */
  val removes: Boolean = kept.exists(_.falls.isDefined)
  val allResults: Seq[ResultBlocks] = outputs.toSeq.map(o => new ResultBlocks(stratum.relations(o), removes))
  val memory = new MemoryAccount(context) // before the gang, which meets when it is made
  val gang =
    new BarrierGang(GangKey(run, context.stageAttemptNumber()), context.partitionId(), tasks, blockSpace, context)
  val store = new BlockStore(context)
  private var spilledBytes = 0.0 // of all tasks, as mappedBytes
  private var mappedBytes = 0.0
  private val began = System.nanoTime()
  private val parts = mutable.LinkedHashMap.empty[String, Double]
  private var partBegan = began

  /** The only relation, in forms of evaluation for one. */
  def output: Int = outputs.head
  def results: ResultBlocks = allResults.head

  /** Ends a part of loading, for the report. */
  def ends(part: String): Unit = {
    val now = System.nanoTime()
    parts(part) = parts.getOrElse(part, 0.0) + (now - partBegan) / 1e9
    partBegan = now
  }

  /** Waits for all tasks; the rows that the state holds no longer need memory as blocks. */
  def endLoading(): Unit = {
    val sums = gang.allreduce(Array(store.spilledBytes.toDouble, memory.mappedBytes.toDouble))
    spilledBytes = sums(0)
    mappedBytes = sums(1)
    store.shrink()
    context.taskMetrics().incDiskBytesSpilled(store.spilledBytes)
  }

  /** Tests whether the condition holds in any task. */
  def isAnywhere(condition: Boolean): Boolean = gang.allreduce(Array(if (condition) 1.0 else 0.0))(0) > 0

  /** Places blocks of a relation behind those of the outputs before it. */
  def placed(at: Int, blocks: Iterator[(Int, Array[Byte])]): Iterator[(Int, Array[Byte])] =
    blocks.map { case (target, bytes) => (at * partitions + target, bytes) }

  /** Reports a run; `loaded` and `looped` are the times at which its parts ended. */
  def report(
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
