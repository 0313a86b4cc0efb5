package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.DataType

/** Expressions over texts of sets: arrays in ascending order and without duplicates, as [[Packed]] stores them. */
private[plan] object Sets {

  /** Returns the text of the set of one value, null of a null. */
  def ofElement(value: Expression): Expression = {
    val packed = Packed(CreateArray(Seq(value)))
    if (value.nullable) If(IsNull(value), Literal(null, packed.dataType), packed) else packed
  }

  /** Returns the text of the `limit` least elements of two sets. */
  def merged(old: Expression, next: Expression, limit: Expression, dataType: DataType): Expression = {
    val all = ArrayUnion(Unpacked(old, dataType), Unpacked(next, dataType))
    Packed(Slice(SortArray(all, Literal(true)), Literal(1), limit))
  }
}
