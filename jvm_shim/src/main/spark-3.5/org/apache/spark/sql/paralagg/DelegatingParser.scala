package org.apache.spark.sql.paralagg

import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** A parser that passes everything but plans to another one. */
abstract class DelegatingParser(delegate: ParserInterface) extends ParserInterface {
  protected def parsed(sqlText: String)(parse: String => LogicalPlan): LogicalPlan
}
