package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, CodeGenerator, ExprCode}
import org.apache.spark.sql.types.{DataType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * A value that is no word (an array, a struct, bytes, a wide decimal) as a text, which the loop interns like any string.
 * Texts compare as their values, and equal values have equal texts; see [[Packer]].
 */
case class Packed(child: Expression) extends UnaryExpression {
  override def dataType: DataType = StringType
  override def prettyName: String = "packed"

  @transient private lazy val packer = new Packer(child.dataType)

  override protected def nullSafeEval(value: Any): Any = packer.pack(value)

  override protected def doGenCode(context: CodegenContext, ev: ExprCode): ExprCode = {
    val reference = context.addReferenceObj("packer", packer)
    nullSafeCodeGen(context, ev, value => s"${ev.value} = $reference.pack($value);")
  }

  override protected def withNewChildInternal(newChild: Expression): Packed = copy(newChild)
}

/** The value of a text of [[Packed]]. */
case class Unpacked(child: Expression, override val dataType: DataType) extends UnaryExpression {
  override def prettyName: String = "unpacked"

  @transient private lazy val packer = new Packer(dataType)

  override protected def nullSafeEval(text: Any): Any = packer.unpack(text.asInstanceOf[UTF8String])

  override protected def doGenCode(context: CodegenContext, ev: ExprCode): ExprCode = {
    val reference = context.addReferenceObj("packer", packer)
    nullSafeCodeGen(context, ev,
      text => s"${ev.value} = (${CodeGenerator.boxedType(dataType)}) $reference.unpack($text);")
  }

  override protected def withNewChildInternal(newChild: Expression): Unpacked = copy(newChild)
}
