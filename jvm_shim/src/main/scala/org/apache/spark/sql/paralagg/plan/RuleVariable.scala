package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.expressions.{Expression, LeafExpression, Unevaluable}
import org.apache.spark.sql.types.DataType

/** A variable of a rule, by name. Input projections replace it by an attribute, kernels by a local variable. */
case class RuleVariable(name: String, dataType: DataType, nullable: Boolean) extends LeafExpression with Unevaluable {
  override def toString: String = name
}

object PlainVariable {

  /** The variable that `expression` is, if it is nothing else. */
  def unapply(expression: Expression): Option[String] = expression match {
    case v: RuleVariable => Some(v.name)
    case _ => None
  }
}
