package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{ArrayType, DataType, NullType, StringType}

/** Sets as values: arrays in ascending order and without duplicates, which the loop has as texts of [[Packed]]. */
object Sets {

  /** Returns the type of a set of values of this type; an array is a set already. */
  def setType(dataType: DataType): DataType = dataType match {
    case ArrayType(_, _) | NullType => dataType
    case element => ArrayType(element)
  }

  /** Returns the set of one value, null of a null. */
  def element(value: Expression): Expression =
    CaseWhen(Seq((IsNotNull(value), CreateArray(Seq(value)))), None)

  /** Returns an array as a set of at most `limit` elements. */
  def ofArray(array: Expression, limit: Expression): Expression = least(ArrayDistinct(ArrayCompact(array)), limit)

  /** Returns the text of the set of one value, null of a null. */
  private[plan] def packed(value: Expression): Expression =
    If(IsNull(value), Literal(null, StringType), Packed(CreateArray(Seq(value))))

  /** Returns the text of the `limit` least elements of two texts of sets. */
  private[plan] def merged(old: Expression, next: Expression, limit: Expression, dataType: DataType): Expression =
    Packed(least(ArrayUnion(Unpacked(old, dataType), Unpacked(next, dataType)), limit))

  private def least(array: Expression, limit: Expression): Expression =
    Slice(SortArray(array, Literal(true)), Literal(1), limit)
}
