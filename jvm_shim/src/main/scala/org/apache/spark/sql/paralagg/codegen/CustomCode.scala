package org.apache.spark.sql.paralagg.codegen

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression}
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.paralagg.load.Words
import org.apache.spark.sql.paralagg.plan.{CustomSpec, PlainVariable, RuleVariable}
import org.apache.spark.sql.types.DataType

/**
 * Java source of a user's aggregator: Catalyst's code of its expressions, with `old.c` and `new.c` bound to local
 * variables like the variables of rules ([[RuleVariables]]).
 */
private[paralagg] final class CustomCode(custom: CustomSpec, types: Seq[DataType], context: CodegenContext) {

  /** Returns the code that merges `next` into `old` (Java expressions of words), with `onChange` if `old` changes. */
  def merge(old: Seq[String], next: Seq[String], onChange: String): String = {
    val n = types.length
    val words = (0 until 2 * n).map(_ => context.freshName("a"))
    val locals = (old ++ next).zip(words).map { case (from, word) => s"long $word = $from;\n" }.mkString
    val read = custom.combine.toSeq ++ custom.improves
    val used = read.filterNot(isPlain).flatMap(_.collect { case v: RuleVariable => slot(v.name) }).toSet
    val (declared, bound) = (0 until 2 * n).map { i =>
      val t = Words.of(types(i % n))
      val local = context.freshName("x")
      val value = ExprCode(EmptyBlock, FalseLiteral, JavaCode.variable(local, types(i % n)))
      (if (used(i)) s"${t.javaType} $local = ${t.decode(words(i))};\n" else "", value)
    }.unzip
    val (codes, results) = custom.combine.indices.map(j => result(custom.combine(j), types(j), words, bound)).unzip
    val store = old.zip(results).map { case (to, z) => s"$to = $z; " }.mkString + onChange
    val put = custom.improves match {
      case Some(test) =>
        val value = generate(test, bound)
        val passes = if (value.isNull == FalseLiteral) s"${value.value}" else s"!${value.isNull} && ${value.value}"
        s"${value.code}\nif ($passes) { ${codes.mkString} $store }\n"
      case None =>
        val differs = words.zip(results).map { case (o, z) => s"$o != $z" }.mkString(" || ")
        s"${codes.mkString}\nif ($differs) { $store }\n"
    }
    s"{ $locals ${declared.mkString} $put }\n"
  }

  private def isPlain(e: Expression): Boolean = e.isInstanceOf[RuleVariable]

  /** Returns a variable's slot: the columns of `old`, then those of `new`. */
  private def slot(name: String): Int = {
    val column = custom.columns.indexOf(name.drop(4))
    if (name.startsWith("old.")) column else types.length + column
  }

  private def result(
      e: Expression, dataType: DataType, words: Seq[String], bound: Seq[ExprCode]): (String, String) = e match {
    case PlainVariable(name) => ("", words(slot(name)))
    case _ =>
      val value = generate(e, bound)
      val word = context.freshName("z")
      val fails =
        if (value.isNull == FalseLiteral) ""
        else s"if (${value.isNull}) ${JavaNames.Sums}.combinedToNull(\"${custom.name}\");\n"
      (s"${value.code}\n${fails}long $word = ${Words.of(dataType).encode(value.value.toString)};\n", word)
  }

  private def generate(e: Expression, bound: Seq[ExprCode]): ExprCode = {
    context.currentVars = bound
    context.INPUT_ROW = null
    e.transform { case v: RuleVariable => BoundReference(slot(v.name), v.dataType, nullable = false) }.genCode(context)
  }
}
