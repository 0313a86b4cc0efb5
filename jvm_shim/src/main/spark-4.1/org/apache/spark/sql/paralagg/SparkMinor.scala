package org.apache.spark.sql.paralagg

import org.apache.spark.QueryContext
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer
import org.apache.spark.sql.catalyst.plans.logical.{
  CompoundPlanStatement, LogicalPlan, SubqueryAlias, UnionLoop, UnresolvedWith
}
import org.apache.spark.sql.types.{DataType, StringType}

/** What Spark 4.1 and later have otherwise than earlier ones. */
object SparkMinor {

  /** Tests whether an operation fails on overflow and division by zero. */
  def isAnsi(operation: BinaryArithmetic): Boolean = operation match {
    case Divide(_, _, context) => context.evalMode == EvalMode.ANSI
    case IntegralDivide(_, _, context) => context.evalMode == EvalMode.ANSI
    case Remainder(_, _, context) => context.evalMode == EvalMode.ANSI
    case Pmod(_, _, context) => context.evalMode == EvalMode.ANSI
    case _ => false
  }

  /** Returns the same operation, which fails on overflow. */
  def failing(operation: BinaryArithmetic): Expression = operation match {
    case a: Add => a.copy(evalContext = ansi(a.evalContext))
    case s: Subtract => s.copy(evalContext = ansi(s.evalContext))
    case m: Multiply => m.copy(evalContext = ansi(m.evalContext))
  }

  private def ansi(context: NumericEvalContext) = context.copy(evalMode = EvalMode.ANSI)

  /** Returns the CTEs of a WITH: name, query, `MAX RECURSION LEVEL`. */
  def ctes(w: UnresolvedWith): Seq[(String, SubqueryAlias, Option[Int])] = w.cteRelations

  def withCtes(
      w: UnresolvedWith, child: LogicalPlan, ctes: Seq[(String, SubqueryAlias, Option[Int])]): UnresolvedWith =
    w.copy(child = child, cteRelations = ctes)

  def maxDepth(loop: UnionLoop): Option[Int] = loop.maxDepth

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
