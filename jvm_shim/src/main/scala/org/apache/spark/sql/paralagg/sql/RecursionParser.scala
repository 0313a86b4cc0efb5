package org.apache.spark.sql.paralagg.sql

import java.util.Locale

import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.paralagg.{DelegatingParser, SparkMinor}
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * The parser of recursive queries in SQL, the first step of `text → RecursionParser → ClaimRecursion →
 * ResolveRecursion`.
 *
 * It delegates every text to the parser below, Spark's or that of another extension. In a text with the word RECURSIVE
 * it masks the aggregates in heads before, and afterwards `ClaimRecursion` claims the CTEs that Spark does not support.
 *
 * @param isConfigured the session can resolve claimed CTEs; in an attached session (`Bridge.attach`) a claim is an error
 */
class RecursionParser(delegate: ParserInterface, isConfigured: Boolean = true)
    extends DelegatingParser(delegate) {

  override def parsePlan(sqlText: String): LogicalPlan = parsed(sqlText)(delegate.parsePlan)
  override def parseQuery(sqlText: String): LogicalPlan = parsed(sqlText)(delegate.parseQuery)

  override def parseExpression(sqlText: String): Expression = delegate.parseExpression(sqlText)
  override def parseTableIdentifier(sqlText: String): TableIdentifier = delegate.parseTableIdentifier(sqlText)
  override def parseFunctionIdentifier(sqlText: String): FunctionIdentifier =
    delegate.parseFunctionIdentifier(sqlText)
  override def parseMultipartIdentifier(sqlText: String): Seq[String] = delegate.parseMultipartIdentifier(sqlText)
  override def parseTableSchema(sqlText: String): StructType = delegate.parseTableSchema(sqlText)
  override def parseDataType(sqlText: String): DataType = delegate.parseDataType(sqlText)

  override protected def parsed(sqlText: String)(parse: String => LogicalPlan): LogicalPlan =
    if (!sqlText.toLowerCase(Locale.ROOT).contains("recursive")) parse(sqlText)
    else if (SparkMinor.Recursive < 0) {
      try parse(sqlText)
      catch { case e: ParseException if WithRecursive.findFirstIn(sqlText).isDefined => SqlProblem.noRecursion(e) }
    } else {
      val heads = Heads.in(sqlText)
      val plan =
        try parse(heads.text)
        catch { case e: ParseException if !heads.isEmpty => throw e.withCommand(sqlText) }
      new ClaimRecursion(heads, isConfigured).apply(plan)
    }

  private def WithRecursive = "(?i)\\bwith\\s+recursive\\b".r
}
