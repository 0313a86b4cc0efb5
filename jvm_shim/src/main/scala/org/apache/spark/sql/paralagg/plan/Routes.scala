package org.apache.spark.sql.paralagg.plan

import org.json4s._

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeReference, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, UnaryNode}
import org.apache.spark.sql.types.{ArrayType, DataType, StructField, StructType}

/** A column of [[Routes]]: the child's column at a position, or a route, which shows several of each row on its way. */
sealed trait RouteColumn
case class KeptColumn(position: Int) extends RouteColumn
case class PathColumn(name: String, shown: Seq[Int], limit: Option[Int]) extends RouteColumn

/** Where the child has the keys of a row, those of its parent and the hops, and what the result has; all by position. */
case class RouteSpec(keys: Seq[Int], parents: Seq[Int], hops: Int, columns: Seq[RouteColumn])

/** The arrays of `ra.path` above the fixpoint that computes the parent of each row. */
case class Routes(spec: RouteSpec, output: Seq[Attribute], child: LogicalPlan)
    extends UnaryNode
    with MultiInstanceRelation {

  override lazy val references: AttributeSet = child.outputSet // the child keeps all columns at their positions
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))
  override def maxRows: Option[Long] = child.maxRows

  /** Returns the columns of `required` as a projection of the child, if no route is among them. */
  def withoutRoutes(required: AttributeSet): Option[Project] = {
    val kept = output.zip(spec.columns).filter(c => required.contains(c._1)).map {
      case (a, KeptColumn(position)) => Some(Alias(child.output(position), a.name)(exprId = a.exprId))
      case _ => None
    }
    if (kept.contains(None)) None else Some(Project(kept.flatten, child))
  }

  override protected def withNewChildInternal(newChild: LogicalPlan): Routes = copy(child = newChild)
  override def simpleString(maxFields: Int): String = s"Routes ${output.mkString("[", ", ", "]")}"
}

object Routes {
  import PlanReader.{int, list, option, text}

  /** Returns the routes over `child`, the rows that `json` describes by the names of their columns. */
  def of(json: JValue, child: LogicalPlan): Routes = {
    def position(name: JValue): Int = child.output.indexWhere(_.name == text(name))
    def positions(names: JValue): Seq[Int] = list(names).map(position)
    val named = list(json \ "columns").map { column =>
      val name = column \ "name"
      text(name) -> option(column \ "shown")(positions).fold[RouteColumn](KeptColumn(position(name)))(
        PathColumn(text(name), _, option(column \ "limit")(int)))
    }
    val spec =
      RouteSpec(positions(json \ "keys"), positions(json \ "parents"), position(json \ "hops"), named.map(_._2))
    val output = named.map {
      case (name, KeptColumn(at)) => AttributeReference(name, child.output(at).dataType, child.output(at).nullable)()
      case (name, PathColumn(_, shown, _)) =>
        AttributeReference(name, typeOf(shown.map(child.output)), nullable = false)()
    }
    Routes(spec, output, child)
  }

  private def typeOf(shown: Seq[Attribute]): DataType = shown match {
    case Seq(one) => ArrayType(one.dataType)
    case several => ArrayType(StructType(several.map(a => StructField(a.name, a.dataType))))
  }
}
