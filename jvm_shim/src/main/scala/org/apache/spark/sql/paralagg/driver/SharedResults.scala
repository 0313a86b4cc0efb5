package org.apache.spark.sql.paralagg.driver

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.execution.{SparkPlan, SQLExecution}
import org.apache.spark.sql.execution.adaptive.TableCacheQueryStageExec
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.paralagg.plan.FixpointSpec
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * What a query computes once: its fixpoints by canonical plan, and plans that it shares. Spark itself reuses only
 * exchanges, and a fixpoint need not be below one.
 */
private[paralagg] object SharedResults extends SparkListener {

  /** A result, computed outside of the lock, since ranks that may fall back to Spark run meanwhile. */
  private final class Result[T](compute: () => T) {
    lazy val value: T = compute()
  }

  private val results = mutable.Map.empty[String, mutable.Map[AnyRef, Result[_]]]
  private var current: SparkContext = _

  /** Returns the result of `plan` in the query of this thread; computes it if there is none. */
  def getOrCompute(sc: SparkContext, plan: FixpointOperator)(compute: => RDD[ColumnarBatch]): RDD[ColumnarBatch] = {
    val (spec, result) = once(sc, canonical(plan))((plan.spec, new Result(() => compute)))
    plan.spec.whole.lastRun = spec.whole.lastRun
    result.value
  }

  /** Returns what was computed for `key` in the query of this thread; computes it if there is nothing. */
  def once[T](sc: SparkContext, key: AnyRef)(compute: => T): T =
    Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).fold(compute) { query =>
      synchronized {
        if (current ne sc) {
          current = sc
          results.clear()
          sc.addSparkListener(this)
        }
        results.getOrElseUpdate(query, mutable.Map.empty).getOrElseUpdate(key, new Result(() => compute))
      }.value.asInstanceOf[T]
    }

  /**
   * Returns what equal plans have in common. A stage of an adaptive plan that reads a cached table has a number, and no
   * canonical form without it.
   */
  def canonical(plan: SparkPlan): SparkPlan = plan.transform { case s: TableCacheQueryStageExec =>
    s.plan
  }.canonicalized

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: SparkListenerSQLExecutionEnd => synchronized(results.remove(e.executionId.toString))
    case _ =>
  }

  /** Returns the number of queries with results: 0 after all have ended (a test checks it). */
  def liveCount: Int = synchronized(results.size)
}
