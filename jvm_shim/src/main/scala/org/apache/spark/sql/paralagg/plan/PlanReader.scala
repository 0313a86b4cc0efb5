package org.apache.spark.sql.paralagg.plan

import scala.reflect.ClassTag

import org.json4s._

import org.apache.spark.sql.catalyst.expressions.{
  Add, Cast, Coalesce, EqualNullSafe, EqualTo, Expression, Greatest, IsNotNull, IsNull, Literal, Or
}
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.types.DataType

object PlanReader {
  val Version = 12

  def stratum(plan: JValue, position: Int, templates: IndexedSeq[Expression]): StratumSpec = {
    if (int(plan \ "version") != Version) {
      throw new ParalaggException(
        ErrorCodes.ShimMismatch,
        s"the plan has schema version ${int(plan \ "version")}, this jar reads $Version.",
        "install the jar of the Python package's version (ra.doctor() names it).")
    }
    val json = list(plan \ "strata")(position)
    new StratumSpec(plan, json, new PlanReader(json, templates))
  }

  private[paralagg] def list(value: JValue): List[JValue] = value match {
    case JArray(items) => items
    case _ => Nil
  }
  private[paralagg] def int(value: JValue): Int = option(value)(v => v.asInstanceOf[JInt].num.toInt).get
  private[paralagg] def text(value: JValue): String = value match {
    case JString(s) => s
    case _ => null
  }
  private[plan] def number(value: JValue): Double = value match {
    case JInt(i) => i.toDouble
    case other => other.asInstanceOf[JDouble].num
  }
  private[plan] def bool(value: JValue): Boolean = value == JBool(true)
  private[plan] def array[T: ClassTag](value: JValue)(read: JValue => T): Array[T] = list(value).map(read).toArray
  private[plan] def ints(value: JValue): Array[Int] = array(value)(int)
  private[plan] def texts(value: JValue): Array[String] = array(value)(text)
  private[plan] def dataType(json: JValue): DataType = DataType.fromDDL(text(json))
  private[paralagg] def option[T](value: JValue)(read: JValue => T): Option[T] = value match {
    case JNull | JNothing => None
    case v => Some(read(v))
  }
}

/**
 * The reader of a stratum's names and expressions. It rebuilds a call from the analysed expression of its handle, so
 * the call means exactly what Spark's analyser decided.
 */
private[plan] final class PlanReader(stratum: JValue, templates: IndexedSeq[Expression]) {
  import PlanReader._

  private val relations = list(stratum \ "relations")

  /** Returns the reader of another stratum of the same Plan. */
  def of(stratum: JValue): PlanReader = new PlanReader(stratum, templates)

  def relation(name: JValue): Int = relations.indexWhere(_ \ "name" == name)

  /** Returns the position of a dependent column in a relation; -1 if `name` is null. */
  def dependent(relation: Int, name: JValue): Int =
    list(relations(relation) \ "dependents").indexWhere(_ \ "column" \ "name" == name)

  def expressions(json: JValue): Array[Expression] = array(json)(expression)

  def expression(json: JValue): Expression = {
    val handle = option(json \ "handle")(int)
    if ((json \ "col") != JNothing) RuleVariable(text(json \ "col"), dataType(json \ "type"), bool(json \ "nullable"))
    else if ((json \ "lit") != JNothing) handle.map(templates).getOrElse(literal(json \ "lit", dataType(json \ "type")))
    else {
      val args = list(json \ "args").map(expression)
      val call = handle.map(templates(_).withNewChildren(args)).getOrElse(text(json \ "fn") match {
        case "Cast" => Cast(args.head, dataType(json \ "type"))
        case "Add" => Add(args(0), args(1))
        case "EqualTo" => EqualTo(args(0), args(1))
        case "EqualNullSafe" => EqualNullSafe(args(0), args(1))
        case "IsNull" => IsNull(args.head)
        case "IsNotNull" => IsNotNull(args.head)
        case "Greatest" => Greatest(args)
        case "Coalesce" => Coalesce(args)
        case "Or" => Or(args(0), args(1))
        case "Between" => Guards.between(args(0), args(1), args(2), args(3))
        case "RaiseError" => Guards.raise(args.head, dataType(json \ "type"))
        case "Packed" => Packed(args.head)
        case "Unpacked" => Unpacked(args.head, dataType(json \ "type"))
        case "ElementSet" => Sets.packed(args.head)
        case "MergedSets" => Sets.merged(args(0), args(1), args(2), DataType.fromDDL(args(3).toString))
        case "Present" => Guards.present(args(0), args(1))
        case other => throw new IllegalArgumentException(s"no Catalyst expression for $other")
      })
      if (bool(json \ "checked")) Guards.failingOnOverflow(call) else call
    }
  }

  /** Builds a constant of the compiler from a number, a string or a boolean. */
  private def literal(value: JValue, dataType: DataType): Expression = {
    val constant = value match {
      case JInt(i) => Literal(i.toLong)
      case JDouble(d) => Literal(d)
      case JBool(b) => Literal(b)
      case JString(s) => Literal(s)
      case _ => Literal(null, dataType)
    }
    if (constant.dataType == dataType) constant else Literal(Cast(constant, dataType).eval(), dataType)
  }
}
