package org.apache.spark.sql.paralagg

import org.apache.spark.sql.catalyst.expressions._

/** How operations treat overflow, which Spark 4.1 and later keep in a context. */
object Arithmetic {

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
}
