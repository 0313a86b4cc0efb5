package org.apache.spark.sql.paralagg

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.{classic, DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{
  Alias, And, Attribute, AttributeReference, Expression, NamedExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.paralagg.exec.{FixpointStrategy, RunRegistry, Slots}
import org.apache.spark.sql.paralagg.plan._
import org.apache.spark.sql.types.{DataType, StructType}

/** The only class that Python calls. Python decides, this side executes. */
object Bridge {

  /** The Spark that this jar was compiled against, and the version of the Python package that it belongs to. */
  def version(): String = s"$compiledFor|${ShimVersion.value}"

  private lazy val compiledFor: String = {
    val written = new java.util.Properties
    Option(getClass.getResourceAsStream("/META-INF/paralagg.properties")).foreach { in =>
      try written.load(in)
      finally in.close()
    }
    written.getProperty("spark", org.apache.spark.SPARK_VERSION)
  }

  /** Registers the planner strategy in a session that already runs (`ra.attach`). */
  def attach(session: SparkSession): Unit = {
    val experimental = session.experimental
    if (!experimental.extraStrategies.contains(FixpointStrategy)) {
      experimental.extraStrategies = experimental.extraStrategies :+ FixpointStrategy
    }
  }

  /** Tasks that may run at the same moment now; 0 where Spark refuses gangs (dynamic allocation). */
  def slots(session: SparkSession): Int = Slots.available(session.sparkContext)

  /** The DataFrame that a step receives. */
  def reference(session: SparkSession, name: String, schemaJson: String): DataFrame = {
    val schema = DataType.fromJson(schemaJson).asInstanceOf[StructType]
    frame(session, RecursiveReference(name, DataTypeUtils.toAttributes(schema)))
  }

  def analyse(names: JList[String], steps: JList[DataFrame]): Analysis =
    new Analysis(names.asScala.toSeq, steps.asScala.toSeq.map(analysed))

  /**
   * The lazy result of one relation of one stratum. Sources are the analysis' own, then `extraSources` (bases, initial
   * rows, results of lower strata), counted through.
   */
  def fixpoint(
      session: SparkSession,
      analysis: Analysis,
      planJson: String,
      stratum: Int,
      relation: String,
      extraSources: JList[DataFrame],
      reason: String): DataFrame = {
    val spec = new FixpointSpec(planJson, stratum, relation, analysis, reason)
    val sources = analysis.sources ++ extraSources.asScala.map(analysed)
    val inputs = spec.program.inputs.map(i => inputPlan(i, sources(i.source)))
    val output = spec.program.relation(relation).columns.map { c =>
      AttributeReference(c.name, c.dataType, c.nullable)()
    }
    frame(session, RecursiveAggregate(inputs.toSeq, output.toSeq, spec))
  }

  /** Report of the last run of the outermost fixpoint in this DataFrame, or null. */
  def report(df: DataFrame): String = outermost(df).flatMap(n => RunRegistry.report(n.spec)).orNull

  /** What the outermost fixpoint of this DataFrame is, or null. */
  def describe(df: DataFrame): String = outermost(df).map { n =>
    JsonMethods.compact(
      ("plan" -> n.spec.planJson) ~ ("stratum" -> n.spec.stratum) ~ ("relation" -> n.spec.relation) ~
        ("reason" -> n.spec.reason))
  }.orNull

  private def inputPlan(input: InputSpec, source: LogicalPlan): LogicalPlan = {
    val byName = input.columns.map(_.name).zip(source.output).toMap
    def bound(e: Expression): Expression = e.transform { case v: RuleVariable => byName(v.name) }
    val filtered = input.filters.map(bound).reduceOption(And).fold(source)(Filter(_, source))
    // A plain column stays itself, so that Catalyst sees through the projection; a second use of it needs a new name.
    val list = input.exprs.map(bound).zipWithIndex.foldLeft(Vector.empty[NamedExpression]) {
      case (done, (a: Attribute, _)) if !done.exists(_.exprId == a.exprId) => done :+ a
      case (done, (e, i)) => done :+ Alias(e, s"x$i")()
    }
    Project(list, filtered)
  }

  private def outermost(df: DataFrame): Option[RecursiveAggregate] =
    analysed(df).collectFirst { case n: RecursiveAggregate => n }

  private def analysed(df: DataFrame): LogicalPlan =
    df.asInstanceOf[classic.DataFrame].queryExecution.analyzed

  private def frame(session: SparkSession, plan: LogicalPlan): DataFrame =
    classic.Dataset.ofRows(session.asInstanceOf[classic.SparkSession], plan)
}
