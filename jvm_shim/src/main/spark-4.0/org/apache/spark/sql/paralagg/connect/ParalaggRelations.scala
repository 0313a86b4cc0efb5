package org.apache.spark.sql.paralagg.connect

import java.util.{Collections, LinkedHashMap, Map => JMap, Optional}

import scala.jdk.CollectionConverters._

import org.json4s._
import org.json4s.jackson.JsonMethods
import org.sparkproject.connect.protobuf.{Any => Message}

import org.apache.spark.connect.proto
import org.apache.spark.sql.{classic, DataFrame}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connect.planner.SparkConnectPlanner
import org.apache.spark.sql.connect.plugin.RelationPlugin
import org.apache.spark.sql.paralagg.Bridge
import org.apache.spark.sql.paralagg.plan.{Analysis, LastRun, RecursiveAggregate}

/**
 * The [[Bridge]] for clients of Spark Connect, by `spark.connect.extensions.relation.classes`. A client sends a call as
 * a relation (pyspark_paralagg/connect/plugin.py): its arguments as JSON, and the plans of its DataFrames. The result
 * is a plan: that of a reference, of a source or of a fixpoint, or one row with a text.
 */
class ParalaggRelations extends RelationPlugin {

  override def transform(bytes: Array[Byte], planner: SparkConnectPlanner): Optional[LogicalPlan] = {
    val message = Message.parseFrom(bytes)
    if (message.getTypeUrl != ParalaggRelations.Type) Optional.empty()
    else {
      val call = proto.WithRelations.parseFrom(message.getValue)
      val session = planner.session
      val frames = call.getReferencesList.asScala.toSeq.map { relation =>
        classic.Dataset.ofRows(session, planner.transformRelation(relation))
      }
      val arguments = JsonMethods.parse(call.getRoot.getLocalRelation.getSchema)
      Optional.of(ParalaggRelations.untagged(new Call(session, arguments, frames).result.queryExecution.analyzed))
    }
  }
}

object ParalaggRelations {
  val Type = "paralagg"
  private val MaxRuns = 256

  /** Returns a copy without the ids of the client's DataFrames: their columns are not to be found inside a result. */
  private def untagged(plan: LogicalPlan): LogicalPlan = {
    val copy = plan.clone()
    copy.foreach(_.unsetTagValue(LogicalPlan.PLAN_ID_TAG))
    copy
  }

  /** The last runs of clients' fixpoints, by the ids that clients gave them: each action plans its fixpoint anew. */
  private[connect] val runs: JMap[String, LastRun] = Collections.synchronizedMap(
    new LinkedHashMap[String, LastRun](16, 0.75f, true) {
      override def removeEldestEntry(eldest: JMap.Entry[String, LastRun]): Boolean = size > MaxRuns
    })
}

/** One call: `names` are those of the steps, whose DataFrames come first. */
private class Call(session: classic.SparkSession, arguments: JValue, frames: Seq[classic.DataFrame]) {
  private def text(name: String): String = (arguments \ name).asInstanceOf[JString].s
  private def number(name: String): Int = (arguments \ name).asInstanceOf[JInt].num.toInt
  private lazy val names = (arguments \ "names").asInstanceOf[JArray].arr.map(_.asInstanceOf[JString].s)
  private def steps = frames.take(names.length).map(f => f: DataFrame)
  private lazy val analysis: Analysis = Bridge.analyse(names.asJava, steps.asJava)

  def result: classic.DataFrame = (text("call") match {
    case "server" => row(s"${Bridge.version()}|${Bridge.slotsSoon(session)}")
    case "reference" => Bridge.reference(session, text("name"), text("schema"))
    case "analyse" => row(analysis.json())
    case "source" => Bridge.source(session, analysis, number("source"))
    case "fixpoint" => fixpoint()
    case "recursionInSql" => row(Bridge.recursionInSql(frames.head))
    case "answerInSql" => Bridge.answerInSql(frames.head, text("answer"))
    case "freeIndexes" =>
      Bridge.freeIndexes(session)
      row(null)
    case "report" => row(Option(ParalaggRelations.runs.get(text("run"))).map(_.report).orNull)
  }).asInstanceOf[classic.DataFrame]

  private def fixpoint(): DataFrame = {
    val sources = frames.drop(names.length).map(f => f: DataFrame)
    val df = Bridge.fixpoint(
      session, analysis, text("plan"), number("stratum"), text("relation"), sources.asJava, text("reason"))
    val node = df.asInstanceOf[classic.DataFrame].queryExecution.analyzed.collectFirst { case n: RecursiveAggregate =>
      n
    }
    node.foreach(_.spec.lastRun = ParalaggRelations.runs.computeIfAbsent(text("run"), _ => new LastRun))
    df
  }

  private def row(value: String): DataFrame =
    session.createDataFrame(
      Collections.singletonList(org.apache.spark.sql.Row(value)),
      new org.apache.spark.sql.types.StructType().add("value", "string"))
}
