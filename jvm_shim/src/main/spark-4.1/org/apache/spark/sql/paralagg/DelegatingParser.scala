package org.apache.spark.sql.paralagg

import org.apache.spark.sql.catalyst.parser.{ParameterContext, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.StructType

/** A parser that passes everything but plans to another one. */
abstract class DelegatingParser(delegate: ParserInterface) extends ParserInterface {
  protected def parsed(sqlText: String)(parse: String => LogicalPlan): LogicalPlan

  override def parsePlanWithParameters(sqlText: String, parameters: ParameterContext): LogicalPlan =
    parsed(sqlText)(delegate.parsePlanWithParameters(_, parameters))

  override def parseRoutineParam(sqlText: String): StructType = delegate.parseRoutineParam(sqlText)
}
