package org.apache.spark.sql.paralagg.driver

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.LeafExecNode
import org.apache.spark.sql.paralagg.plan.SharedPlan

/** The rows of a shared plan, which is planned and started once for all that read it in a query. */
case class SharedRowsExec(output: Seq[Attribute], @transient shared: SharedPlan) extends LeafExecNode {
  override def nodeName: String = s"SharedRows ${shared.name}"

  /** Runs the stages below the rows now: what waits for them later, such as a broadcast, may give up waiting. */
  override protected def doPrepare(): Unit = rows

  override protected def doExecute(): RDD[InternalRow] = rows

  @transient private lazy val rows: RDD[InternalRow] = SharedResults.once(sparkContext, shared) {
    shared.session.sessionState.executePlan(shared.analyzed).executedPlan.execute()
  }
}
