package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.expressions.{Expression, LeafExpression, Unevaluable}
import org.apache.spark.sql.types.DataType

/** A variable of a rule by name. Projections of inputs replace it by an attribute, kernels by a local variable. */
case class RuleVariable(name: String, dataType: DataType, nullable: Boolean) extends LeafExpression with Unevaluable {
  override def toString: String = name
}
