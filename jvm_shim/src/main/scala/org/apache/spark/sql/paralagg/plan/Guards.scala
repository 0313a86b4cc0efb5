package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.paralagg.{Arithmetic, SparkMinor}
import org.apache.spark.sql.types.{DataType, StringType}

/** The assumptions of a proof as expressions; a violation fails the query (pyspark_paralagg/compile/prove/guard.py). */
private[plan] object Guards {

  /** Checks that `value` is between two constants; NaN is above all, `high` may be null, and a null value passes. */
  def between(value: Expression, low: Expression, high: Expression, message: Expression): Expression = {
    val below = LessThan(value, low)
    val outside = high match {
      case Literal(null, _) => below
      case _ => Or(below, GreaterThan(value, high))
    }
    val checked = If(outside, raise(Concat(Seq(message, Cast(value, StringType))), value.dataType), value)
    if (value.nullable) checked else KnownNotNull(checked)
  }

  /** Checks that `value` is not null. */
  def present(value: Expression, message: Expression): Expression =
    KnownNotNull(If(IsNull(value), raise(Concat(Seq(message, Literal("null"))), value.dataType), value))

  /** Returns the same call with overflow as an error, in any ANSI mode of the session. */
  def failingOnOverflow(call: Expression): Expression = call match {
    case operation @ (_: Add | _: Subtract | _: Multiply) =>
      Arithmetic.failing(operation.asInstanceOf[BinaryArithmetic])
    case m: UnaryMinus => m.copy(failOnError = true)
    case a: Abs => a.copy(failOnError = true)
    case c: Cast => c.copy(evalMode = EvalMode.ANSI)
    case other => throw new IllegalArgumentException(s"${other.getClass.getSimpleName} has no check of overflow")
  }

  /** Returns an error in the place of a value of a type. */
  def raise(message: Expression, dataType: DataType): Expression =
    SparkMinor.raise(message, dataType)
}
