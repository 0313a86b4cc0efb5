package org.apache.spark.sql.paralagg

import org.apache.spark.QueryContext
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer
import org.apache.spark.sql.catalyst.plans.logical.{CompoundPlanStatement, LogicalPlan, UnresolvedWith}
import org.apache.spark.sql.types.{DataType, StringType}

/** What Spark 4.0 and later have otherwise than 3.5. */
object SparkMinor {

  /** Tests whether a WITH is a recursive one. */
  def allowsRecursion(w: UnresolvedWith): Boolean = w.allowRecursion

  /** The token RECURSIVE. */
  val Recursive: Int = SqlBaseLexer.RECURSIVE

  /** Tests whether a plan is a statement of a script. */
  def isScript(plan: LogicalPlan): Boolean = plan.isInstanceOf[CompoundPlanStatement]

  def summary(context: QueryContext): String = context.summary

  /** Tests whether strings compare by their bytes. */
  def isBinary(s: StringType): Boolean = s.isUTF8BinaryCollation

  /** Returns an error in the place of a value of a type. */
  def raise(message: Expression, dataType: DataType): Expression =
    RaiseError(Literal("USER_RAISED_EXCEPTION"), CreateMap(Seq(Literal("errorMessage"), message)), dataType)

  /** Returns the message of an error; None if it has a class of Spark's own. */
  def messageOf(error: RaiseError): Option[Expression] = error.errorParms match {
    case CreateMap(Seq(_, message), _) => Some(message)
    case _ => None
  }

  /** Inlines the common expressions of BETWEEN and nullif. */
  def inlineCommon(plan: LogicalPlan): LogicalPlan = plan.transform { case node =>
    node.transformExpressionsUp {
      case With(child, common) if common.forall(_.child.deterministic) =>
        val values = common.map(c => c.id -> c.child).toMap
        child.transform { case ref: CommonExpressionRef => values.getOrElse(ref.id, ref) }
    }
  }
}
