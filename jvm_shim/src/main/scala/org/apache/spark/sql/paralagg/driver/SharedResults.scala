package org.apache.spark.sql.paralagg.driver

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.execution.{SparkPlan, SQLExecution}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.paralagg.plan.FixpointSpec
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * The results of a query's fixpoints, by their canonical plans: equal ones are computed once. Spark itself reuses exchanges
 * only, and a fixpoint need not stand below one.
 */
private[paralagg] object SharedResults extends SparkListener {

  /** Computed outside of the lock: ranks that may fall back to Spark run then. */
  private final class Result(val spec: FixpointSpec, compute: () => RDD[ColumnarBatch]) {
    lazy val rdd: RDD[ColumnarBatch] = compute()
  }

  private val results = mutable.Map.empty[String, mutable.Map[SparkPlan, Result]]
  private var current: SparkContext = _

  /** What the query that this thread runs has of `plan`, else what `compute` makes of it. */
  def of(sc: SparkContext, plan: FixpointOperator)(compute: => RDD[ColumnarBatch]): RDD[ColumnarBatch] =
    Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).fold(compute) { query =>
      synchronized {
        if (current ne sc) {
          current = sc
          results.clear()
          sc.addSparkListener(this)
        }
        val ofQuery = results.getOrElseUpdate(query, mutable.Map.empty)
        val found = ofQuery.getOrElseUpdate(plan.canonicalized, new Result(plan.spec, () => compute))
        plan.spec.whole.lastRun = found.spec.whole.lastRun
        found
      }.rdd
    }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: SparkListenerSQLExecutionEnd => synchronized(results.remove(e.executionId.toString))
    case _ =>
  }

  /** Queries with results here: none once all have ended (a test holds it). */
  def liveCount: Int = synchronized(results.size)
}
