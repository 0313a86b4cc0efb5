package org.apache.spark.sql.paralagg

import org.apache.spark.sql.catalyst.expressions._

/** How operations treat overflow, which Spark 3.5 and 4.0 keep as a mode. */
object Arithmetic {

  /** Tests whether an operation fails on overflow and division by zero. */
  def isAnsi(operation: BinaryArithmetic): Boolean = operation match {
    case Divide(_, _, mode) => mode == EvalMode.ANSI
    case IntegralDivide(_, _, mode) => mode == EvalMode.ANSI
    case Remainder(_, _, mode) => mode == EvalMode.ANSI
    case Pmod(_, _, mode) => mode == EvalMode.ANSI
    case _ => false
  }

  /** Returns the same operation, which fails on overflow. */
  def failing(operation: BinaryArithmetic): Expression = operation match {
    case a: Add => a.copy(evalMode = EvalMode.ANSI)
    case s: Subtract => s.copy(evalMode = EvalMode.ANSI)
    case m: Multiply => m.copy(evalMode = EvalMode.ANSI)
  }
}
