package org.apache.spark.sql.paralagg.codegen

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression}
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.paralagg.load.{StringWord, Words}
import org.apache.spark.sql.paralagg.plan.RuleVariable

/**
 * The variables of a rule or of a user's aggregator as locals of its code, and the expressions over them. Each variable
 * has a local for its word, and another one for its value if Catalyst's code reads it.
 *
 * @param conditions expressions whose value is read even if they are plain variables
 */
private[paralagg] final class RuleVariables(
    expressions: Seq[Expression], conditions: Seq[Expression], isRead: String => Boolean, context: CodegenContext) {

  /** The variables that the loop reads, by name. */
  private val types: Map[String, RuleVariable] = (expressions ++ conditions)
    .flatMap(_.collect { case v: RuleVariable if isRead(v.name) => v.name -> v }).toMap

  /** The variables whose value is read, not only their word. */
  private val needsValue: Set[String] = (expressions.filterNot(_.isInstanceOf[RuleVariable]) ++ conditions)
    .flatMap(_.collect { case v: RuleVariable => v.name }).toSet

  // The variables bound so far.
  private val words = mutable.Map.empty[String, WordCode]
  private val slots = mutable.Map.empty[String, Int]
  private var values = Vector.empty[ExprCode]

  def isBound(name: String): Boolean = words.contains(name)

  /** Returns the code that declares the variable's locals; empty if nothing reads it. */
  def bind(name: String, code: WordCode): String = types.get(name).fold("") { variable =>
    val local = context.freshName("x")
    val isNull = if (code.isNullable) s"${local}_null" else "false"
    words(name) = WordCode(s"${local}_w", isNull)
    val declared =
      s"long ${local}_w = ${code.word};\n" + (if (isNull == "false") "" else s"boolean $isNull = ${code.isNull};\n")
    if (!needsValue(name)) declared
    else {
      val t = Words.of(variable.dataType)
      slots(name) = values.length
      values :+= ExprCode(
        EmptyBlock,
        if (isNull == "false") FalseLiteral else JavaCode.isNullVariable(isNull),
        JavaCode.variable(local, variable.dataType))
      val value =
        if (isNull == "false" || t != StringWord) t.decode(s"${local}_w")
        else s"($isNull ? null : ${t.decode(s"${local}_w")})"
      s"$declared ${CodeGenerator.javaType(variable.dataType)} $local = $value;\n"
    }
  }

  /** Returns the code that computes `e`, and its word; a plain variable needs no code. */
  def word(e: Expression): (String, WordCode) = e match {
    case RuleVariable(name, _, _) => ("", words(name))
    case _ =>
      val value = generate(e)
      val t = Words.of(e.dataType)
      val local = context.freshName("w")
      val isNull = if (value.isNull == FalseLiteral) "false" else value.isNull.toString
      val encoded = t.encode(value.value.toString)
      val code = if (isNull == "false") encoded else s"($isNull ? 0L : $encoded)"
      (s"${value.code}\nlong $local = $code;\n", WordCode(local, isNull))
  }

  /** Returns the code that computes `condition`, and the test for true; null is not true. */
  def test(condition: Expression): (String, String) = {
    val value = generate(condition)
    val passes = if (value.isNull == FalseLiteral) s"${value.value}" else s"!${value.isNull} && ${value.value}"
    (s"${value.code}", passes)
  }

  private lazy val skippingShortcuts: SQLConf = {
    val conf = new SQLConf // that of a task cannot be cloned
    SQLConf.get.getAllConfs.foreach { case (key, value) => conf.setConfString(key, value) }
    conf.setConf(SQLConf.SUBEXPRESSION_ELIMINATION_SKIP_FOR_SHORTCUT_EXPR, true)
    conf
  }

  private def generate(e: Expression): ExprCode = {
    val bound = e.transform { case v: RuleVariable =>
      BoundReference(slots(v.name), v.dataType, words(v.name).isNullable)
    }
    context.currentVars = values
    context.INPUT_ROW = null
    // A field of a record reads the record's text several times, so code without shared parts would grow exponentially.
    // What AND or OR may skip is not shared: it may be an error.
    val shared =
      SQLConf.withExistingConf(skippingShortcuts)(context.subexpressionEliminationForWholeStageCodegen(Seq(bound)))
    val value = context.withSubExprEliminationExprs(shared.states)(Seq(bound.genCode(context))).head
    val parts = context.evaluateSubExprEliminationState(shared.states.values)
    value.copy(code = code"$parts ${value.code}")
  }
}
