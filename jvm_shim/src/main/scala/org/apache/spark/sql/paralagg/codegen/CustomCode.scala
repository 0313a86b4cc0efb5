package org.apache.spark.sql.paralagg.codegen

import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext
import org.apache.spark.sql.paralagg.plan.CustomSpec

/** Java source of a user's aggregator: expressions over `old.c` and `new.c`, like those of a rule. */
private[codegen] object CustomCode {

  /** Returns the code that merges `next` into `old` (Java expressions of words), with `onChange` if `old` changes. */
  def merge(
      custom: CustomSpec, old: Seq[String], next: Seq[String], onChange: String, context: CodegenContext): String = {
    val variables = new RuleVariables(custom.combine.toSeq, custom.improves.toSeq, _ => true, context)
    val names = Seq("old.", "new.").flatMap(side => custom.columns.map(side + _))
    val locals = names.zip(old ++ next).map { case (name, word) => variables.bind(name, WordCode(word, "false")) }
    val (codes, results) = custom.combine.toSeq.map(variables.word).unzip
    val fails = results.filter(_.isNullable).map { r =>
      s"""if (${r.isNull}) Sums.combinedToNull("${custom.name}");\n"""
    }
    val combined = codes.mkString + fails.mkString
    val store = old.zip(results).map { case (to, z) => s"$to = ${z.word}; " }.mkString + onChange
    val put = custom.improves match {
      case Some(test) =>
        val (code, passes) = variables.test(test)
        s"$code\nif ($passes) { $combined $store }\n"
      case None =>
        val differs = old.zip(results).map { case (o, z) => s"$o != ${z.word}" }.mkString(" || ")
        s"$combined\nif ($differs) { $store }\n"
    }
    s"{ ${locals.mkString} $put }\n"
  }
}
