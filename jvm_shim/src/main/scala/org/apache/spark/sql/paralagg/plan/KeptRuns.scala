package org.apache.spark.sql.paralagg.plan

import scala.collection.mutable

import org.apache.spark.{MapOutputTrackerMaster, ShuffleDependency, SparkEnv}
import org.apache.spark.rdd.{RDD, ShuffledRDD}

/**
 * The results of runs that compute several relations of a recursion, until `forget`. They lie in shuffle files, which
 * Spark deletes once nobody refers to their RDD. A result is used again by the query that has begun its run, and by
 * others while all its files are there.
 */
final class KeptRuns {
  import KeptRuns._

  private val runs = mutable.LinkedHashMap.empty[Any, Kept]

  /** Returns the blocks of the run with this key for a query, or those of a new run. */
  def getOrRun(key: Any, spec: FixpointSpec, query: String)(run: => Blocks): Blocks = synchronized {
    val kept = runs.get(key).filter(k => query != null && k.query == query || k.isComplete).getOrElse {
      spec.whole.lastRun = new LastRun
      val made = new Kept(query, run, spec.whole.lastRun)
      runs -= key
      runs(key) = made
      if (runs.size > MaxRuns) runs -= runs.head._1 // queries with filters on carried keys have runs of their own
      made
    }
    spec.whole.lastRun = kept.lastRun
    kept.blocks
  }

  def forget(): Unit = synchronized(runs.clear())
}

object KeptRuns {
  private val MaxRuns = 4
  type Blocks = ShuffledRDD[Int, Array[Byte], Array[Byte]]

  private final class Kept(val query: String, val blocks: Blocks, val lastRun: LastRun) {

    /** Tests whether the run has succeeded and no file of its result is lost. */
    def isComplete: Boolean = lastRun.report != null && (blocks.dependencies.head match {
      case s: ShuffleDependency[_, _, _] =>
        SparkEnv.get != null && (SparkEnv.get.mapOutputTracker match {
          case t: MapOutputTrackerMaster =>
            t.containsShuffle(s.shuffleId) && t.getNumAvailableOutputs(s.shuffleId) == s.rdd.getNumPartitions
          case _ => false
        })
      case _ => false
    })
  }
}
