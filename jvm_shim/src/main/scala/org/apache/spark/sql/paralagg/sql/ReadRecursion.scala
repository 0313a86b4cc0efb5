package org.apache.spark.sql.paralagg.sql

import org.json4s._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.catalyst.plans.logical.{CTERelationDef, CTERelationRef, LogicalPlan, WithCTE}
import org.apache.spark.sql.paralagg.plan.{Analysis, PlanReader, RecursiveAggregate}

/** The only recursion in SQL that a query reads, of which `ra.why` asks rows. */
final class ReadRecursion private (node: RecursiveAggregate, definitions: Seq[CTERelationDef]) {
  private def analysis: Analysis = node.spec.analysis

  /** Its Plan, and the number of its sources. */
  def json: String = JsonMethods.compact(
    ("plan" -> node.spec.planJson) ~ ("sources" -> (analysis.sources.length + analysis.sqlBases.get.length)))

  /** Returns the relation `result` of the strata in `answer`, over the same sources. */
  def answer(answer: String): LogicalPlan = {
    val parsed = JsonMethods.parse(answer)
    val rows = CompileRecursion.build(parsed, analysis, "a question about a row")(PlanReader.text(parsed \ "result"))
    // Its sources may read other CTEs of the query.
    if (definitions.isEmpty) rows else WithCTE(rows, definitions)
  }
}

object ReadRecursion {

  /** Finds the recursion of an analysed query; None without one, or if the query reads several. */
  def in(query: LogicalPlan): Option[ReadRecursion] = {
    val definitions = query.collectWithSubqueries { case d: CTERelationDef => d }
    val children = definitions.map(d => d.id -> d.child).toMap
    def read(plan: LogicalPlan): Seq[RecursiveAggregate] = plan match {
      case n: RecursiveAggregate => if (n.spec.analysis.sqlBases.isDefined) Seq(n) else Nil
      case r: CTERelationRef => children.get(r.cteId).toSeq.flatMap(read)
      case WithCTE(main, _) => read(main)
      case other => (other.children ++ other.subqueries).flatMap(read)
    }
    val nodes = read(query)
    nodes.headOption.filter(n => nodes.forall(_.spec.analysis eq n.spec.analysis))
      .map(new ReadRecursion(_, definitions))
  }
}
