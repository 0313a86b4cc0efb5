package org.apache.spark.sql

import org.apache.spark.QueryContext
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedWith}
import org.apache.spark.sql.types.{DataType, StringType}

/** The classes of sessions inside of a JVM, by the names that Spark has for them from 4.0 on. */
package object classic {
  type SparkSession = org.apache.spark.sql.SparkSession
  type DataFrame = org.apache.spark.sql.DataFrame

  object Dataset {
    def ofRows(session: SparkSession, plan: LogicalPlan): DataFrame = org.apache.spark.sql.Dataset.ofRows(session, plan)
  }
}

package catalyst.plans.logical {

  /** Spark's own recursive CTEs, which it has from 4.0 on: no plan of this Spark contains one. */
  case class UnionLoop(id: Long, anchor: LogicalPlan, recursion: LogicalPlan, limit: Option[Int]) extends LogicalPlan {
    override def children: Seq[LogicalPlan] = Seq(anchor, recursion)
    override def output: Seq[Attribute] = anchor.output
    override protected def withNewChildrenInternal(newChildren: IndexedSeq[LogicalPlan]): UnionLoop =
      copy(anchor = newChildren(0), recursion = newChildren(1))
  }

  case class UnionLoopRef(loopId: Long, output: Seq[Attribute], accumulated: Boolean) extends LeafNode
}

package paralagg {

  /** What Spark 3.5 has otherwise than later ones. */
  object SparkMinor {

    /** Tests whether a WITH is a recursive one, which this Spark does not parse. */
    def allowsRecursion(w: UnresolvedWith): Boolean = false

    /** The token RECURSIVE, which this Spark does not have. */
    val Recursive: Int = -1

    /** Tests whether a plan is a statement of a script, which this Spark does not have. */
    def isScript(plan: LogicalPlan): Boolean = false

    def summary(context: QueryContext): String = context.fragment

    /** Tests whether strings compare by their bytes. */
    def isBinary(s: StringType): Boolean = true

    /** Returns an error in the place of a value of a type. */
    def raise(message: Expression, dataType: DataType): Expression = RaiseError(message, dataType)

    /** Returns the message of an error. */
    def messageOf(error: RaiseError): Option[Expression] = Some(error.child)

    /** Inlines the common expressions of BETWEEN and nullif, which this Spark does itself. */
    def inlineCommon(plan: LogicalPlan): LogicalPlan = plan
  }
}
