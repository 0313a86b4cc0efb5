package org.apache.spark.sql.paralagg

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.commons.lang3.reflect.FieldUtils
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnionLoop, WithCTE}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.{classic, DataFrame, SparkSession}
import org.apache.spark.sql.paralagg.driver.{KeptIndexes, KeptStates, RunRegistry, Sizes}
import org.apache.spark.sql.paralagg.gang.Slots
import org.apache.spark.sql.paralagg.plan.{
  Analysis, Carried, FixpointSpec, Reads, RecursiveAggregate, RecursiveReference, Routes, SharedRows
}
import org.apache.spark.sql.paralagg.rules.{RewriteUnionLoop, Rules}
import org.apache.spark.sql.paralagg.sql.{ReadRecursion, RecursionParser}
import org.apache.spark.sql.types.{DataType, StructType}

/** The only class that Python calls. Python makes the decisions; the shim executes them. */
object Bridge extends Logging {

  /** Returns the Spark version that this jar was compiled against, and the version of its Python package. */
  def version(): String = s"$compiledFor|${ShimVersion.value}"

  private lazy val compiledFor: String = {
    val properties = new java.util.Properties
    Option(getClass.getResourceAsStream("/META-INF/paralagg.properties")).foreach { in =>
      try properties.load(in)
      finally in.close()
    }
    properties.getProperty("spark", org.apache.spark.SPARK_VERSION)
  }

  /**
   * Registers the planner strategy and the rules in a running session (`ra.attach`). Spark applies such rules last, so
   * filters that they push down do not reach scans. Recursive queries in SQL fail with a hint.
   */
  def attach(session: SparkSession): Unit = {
    StaticConfs.register()
    val experimental = session.experimental
    if (!session.asInstanceOf[classic.SparkSession].sessionState.planner.strategies.contains(FixpointStrategy)) {
      experimental.extraStrategies = experimental.extraStrategies :+ FixpointStrategy
      experimental.extraOptimizations = experimental.extraOptimizations ++ Rules.all
      attachSql(session.asInstanceOf[classic.SparkSession])
    }
  }

  /**
   * Replaces the parser: the analyzer of a running session takes no further rules, so a recursive query fails with a
   * hint instead of Spark's syntax error. Sessions derived from it have all extensions.
   */
  private def attachSql(session: classic.SparkSession): Unit = {
    new ParalaggExtensions().apply(session.extensions) // for newSession()
    val state = session.sessionState
    try FieldUtils.writeField(state, "sqlParser", new RecursionParser(state.sqlParser, isConfigured = false), true)
    catch {
      case e @ (_: ReflectiveOperationException | _: RuntimeException) =>
        logWarning("recursive queries in SQL need ra.configure, not ra.attach", e)
    }
  }

  /** Sets a static conf for the application; null unsets it. */
  def setStatic(session: SparkSession, key: String, value: String): Unit = StaticConfs.set(session, key, value)

  /** Returns the number of tasks that may run at the same time; 0 if Spark refuses gangs (dynamic allocation). */
  def slots(session: SparkSession): Int = Slots.available(session.sparkContext)

  /** Returns `slots`, but waits for the first executor as an execution does. */
  def slotsSoon(session: SparkSession): Int = Slots.availableSoon(session.sparkContext)

  /** Returns the DataFrame that a step receives. */
  def reference(session: SparkSession, name: String, schemaJson: String): DataFrame = {
    val schema = DataType.fromJson(schemaJson).asInstanceOf[StructType]
    frame(session, RecursiveReference(name, DataTypeUtils.toAttributes(schema)))
  }

  /** Returns how the plan of `df` reads its references, see [[Reads]]. `relations` are the recursive ones. */
  def reads(df: DataFrame, relations: JList[String]): String =
    Reads.json(df.sparkSession.asInstanceOf[classic.SparkSession], analysed(df), relations.asScala.toSet)

  /** Replaces the reads of references in `df`, in the order of `reads`, by `frames`. */
  def substitute(df: DataFrame, frames: JList[DataFrame]): DataFrame =
    frame(df.sparkSession, Reads.substitute(analysed(df), frames.asScala.toSeq.map(analysed)))

  /** As `substitute`, for the rows that the anti join above read `at` rejects for `changed`, see [[Reads.turn]]. */
  def turn(
      df: DataFrame, frames: JList[DataFrame], at: Int, changed: JList[DataFrame], lets: Boolean): DataFrame = {
    def plans(frames: JList[DataFrame]) = frames.asScala.toSeq.map(analysed)
    frame(df.sparkSession, Reads.turn(analysed(df), plans(frames), at, plans(changed), lets))
  }

  def analyse(names: JList[String], steps: JList[DataFrame]): Analysis =
    new Analysis(
      names.asScala.toSeq,
      steps.asScala.toSeq.map(analysed),
      steps.get(0).sparkSession.asInstanceOf[classic.SparkSession].sessionState.catalogManager)

  /** Returns a source of the steps. */
  def source(session: SparkSession, analysis: Analysis, n: Int): DataFrame = frame(session, analysis.sources(n))

  /**
   * Returns the lazy result of one relation of one stratum. Its sources are those of `analysis`, then `extraSources`
   * (bases, initial rows, results of lower strata), numbered consecutively.
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
    frame(session, RecursiveAggregate.of(spec, sources))
  }

  /** Returns the relation `df` for so many readers in one query, see [[SharedRows]]. */
  def shared(df: DataFrame, name: String, readers: Int, most: Int): DataFrame = {
    val session = df.sparkSession.asInstanceOf[classic.SparkSession]
    SharedRows.of(session, name, analysed(df), readers, most).fold(df)(frame(session, _))
  }

  /** Returns the rows of `df` with the routes that `json` describes, see [[Routes]]. */
  def routes(df: DataFrame, json: String): DataFrame =
    frame(df.sparkSession, Routes.of(JsonMethods.parse(json), analysed(df)))

  /** Returns a step over `rows` with their last `further` columns, see [[Carried]]; or why it cannot, as text. */
  def carried(step: DataFrame, relation: String, rows: DataFrame, further: Int, order: String): AnyRef =
    try frame(step.sparkSession, Carried.of(analysed(step), relation, analysed(rows), further, order))
    catch { case e: Carried.Refusal => s"${if (e.isManyParents) "parents" else "operator"}|${e.getMessage}" }

  /** Returns the Plan of the recursion in SQL that this DataFrame reads, and the number of its sources; or null. */
  def recursionInSql(df: DataFrame): String = ReadRecursion.in(analysed(df)).map(_.json).orNull

  /** Returns the answer to a question about that recursion, see [[ReadRecursion]]. */
  def answerInSql(df: DataFrame, json: String): DataFrame =
    frame(df.sparkSession, ReadRecursion.in(analysed(df)).get.answer(json))

  /** Tests whether a run for this DataFrame computes other relations, too, and keeps them for other queries. */
  def isTogether(df: DataFrame): Boolean = outermost(df).exists(_.spec.together.nonEmpty)

  /** Forgets what runs of this DataFrame's recursion have computed for several queries. */
  def forget(df: DataFrame): Unit = outermost(df).foreach(_.spec.analysis.kept.forget())

  /** Returns a name for the state of a run, see [[KeptStates]]. */
  def keptName(session: SparkSession): Int = KeptStates.name(session.sparkContext)

  /** Tests whether an executor has a state with this name. */
  def hasKept(session: SparkSession, name: Int): Boolean =
    KeptStates.locations(session.sparkContext, name, 0).nonEmpty

  /** Frees the state with this name, if there is one. */
  def freeKept(session: SparkSession, name: Int): Unit = KeptStates.free(session.sparkContext, name)

  /** Frees the indexes that queries have left for others. */
  def freeIndexes(session: SparkSession): Unit = KeptIndexes.free(session.sparkContext)

  /** Returns the report of the last run of the outermost fixpoint in this DataFrame, or null. */
  def report(df: DataFrame): String = outermost(df).flatMap(n => RunRegistry.report(n.spec.whole)).orNull

  /** Returns the runs that have changed since the number `after`; `now` is the number for the next call. */
  def runs(after: Long): String = JsonMethods.compact(RunRegistry.since(after))

  /** Describes the outermost fixpoint of this DataFrame; or null. */
  def describe(df: DataFrame): String = outermost(df).map { n =>
    JsonMethods.compact(
      ("plan" -> n.spec.planJson) ~ ("stratum" -> n.spec.stratum) ~ ("relation" -> n.spec.relation) ~
        ("reason" -> n.spec.reason))
  }.orNull

  /** Returns the columns of the outermost fixpoint that the optimised plan computes. Runs the optimizer. */
  def computed(df: DataFrame): Array[String] = outermost(df).toArray.flatMap { n =>
    optimized(df).collectWithSubqueries {
      case o: RecursiveAggregate if o.spec.whole eq n.spec.whole => o.output.map(_.name)
    }.flatten.distinct
  }

  /** Returns the inputs of the outermost fixpoint. */
  def inputs(df: DataFrame): Array[DataFrame] = {
    val fixpoint = planned(df)
    fixpoint.reads.toArray.map(r => frame(df.sparkSession, fixpoint.children(r.child)))
  }

  /** Returns what the outermost fixpoint needs for each row of these inputs, see [[Sizes]]. */
  def sizes(df: DataFrame): String = {
    val session = df.sparkSession.asInstanceOf[classic.SparkSession]
    val partitions = session.sessionState.conf.numShufflePartitions
    JsonMethods.compact(Sizes.of(planned(df), session.sparkContext, partitions))
  }

  /** Returns the outermost fixpoint as the optimizer leaves it, which may have fewer columns and rows of inputs. */
  private def planned(df: DataFrame): RecursiveAggregate = {
    val n = outermost(df).get
    optimized(df).collectWithSubqueries { case o: RecursiveAggregate if o.spec.whole eq n.spec.whole => o }
      .headOption.getOrElse(n)
  }

  /** Returns why recursive CTEs below min or max in this DataFrame were left to Spark, or null. */
  def leftToSpark(df: DataFrame): String = {
    val loops = if (hasCtes(df)) optimized(df).collectWithSubqueries { case loop: UnionLoop => loop }
    else Nil
    val reasons = loops.flatMap(_.getTagValue(RewriteUnionLoop.Refused))
    if (reasons.isEmpty) null else reasons.distinct.mkString("; ")
  }

  /** Returns the outermost fixpoint; with CTEs it looks into the optimised plan, which has them inlined. */
  private def outermost(df: DataFrame): Option[RecursiveAggregate] = {
    def first(plan: LogicalPlan) = SharedRows.find(plan) { case n: RecursiveAggregate => n }
    (if (hasCtes(df)) first(optimized(df)) else None).orElse(first(analysed(df)))
  }

  private def hasCtes(df: DataFrame): Boolean = analysed(df).collectWithSubqueries { case w: WithCTE => w }.nonEmpty

  private def optimized(df: DataFrame): LogicalPlan =
    df.asInstanceOf[classic.DataFrame].queryExecution.optimizedPlan

  private def analysed(df: DataFrame): LogicalPlan =
    df.asInstanceOf[classic.DataFrame].queryExecution.analyzed

  private def frame(session: SparkSession, plan: LogicalPlan): DataFrame =
    classic.Dataset.ofRows(session.asInstanceOf[classic.SparkSession], plan)
}
