package org.apache.spark.sql.paralagg.codegen

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext
import org.apache.spark.sql.paralagg.plan.{RuleSpec, StratumSpec}
import org.apache.spark.sql.paralagg.state.{Accumulator, Shape}

/**
 * The code of one kernel: one loop over the driver's rows, in which each of the rules stands as a block of its own
 * ([[RuleBody]]), and before it the local variables that they asked for.
 *
 * @param rules rules of the same driver, each with its place in the stratum
 */
private[paralagg] final class KernelBody(
    stratum: StratumSpec, shape: Shape, tasks: Int, ansi: Boolean, traced: Boolean, rules: Seq[(RuleSpec, Int)]) {
  private val driver = rules.head._1.driver
  private val isCopy = driver.index >= 0 && stratum.relationIndex(driver.index).copy

  /** In place, a row that improves before its turn need not be queued again: its flag falls when it is read. */
  private val popsFlags = stratum.inPlace && !isCopy
  private val driverPart =
    if (isCopy) s"ra_loop.relationIndex(${driver.index}).part()" else s"ra_loop.part(${driver.relation})"
  private val locals = new KernelLocals(stratum, shape, ansi, traced)
  private val values = new AccumulatorCode(
    "ra_dv", if (isCopy) "ra_d.state()" else "ra_d.driverValues()", stratum.relations(driver.relation),
    shape.relations(driver.relation), stratum.makesStrings, ansi, traced, locals.context)

  def context: CodegenContext = locals.context

  val source: String = {
    val bodies = rules.map { case (rule, position) =>
      new RuleBody(stratum, shape, tasks, rule, position, values, locals).code
    }.map(_.replace(KernelLocals.Reload, reload)) // only now it is known what there is to reload
    s"""public void run(${JavaNames.LoopState} ra_loop, int ra_from, int ra_to) {
       |  ${JavaNames.RelationPart} ra_d = $driverPart;
       |  int[] ra_current = ra_d.current();
       |  long[] ra_dk = ra_d.keys().words();
       |  ${values.declare}
       |  ${if (popsFlags) "byte[] ra_flags = ra_d.state().flags();" else ""}
       |  ${JavaNames.Dictionary} ra_strings = ra_loop.strings();
       |  ${locals.declare}
       |  for (int ra_i = ra_from; ra_i < ra_to; ra_i++) {
       |    int ra_u = ra_current[ra_i];
       |    ${if (popsFlags) s"ra_flags[ra_u] &= ~${Accumulator.Queued};" else ""}
       |    ${if (traced) s"long ra_origin = ${JavaNames.RowAddress}.of(${driver.relation}, ra_loop.me(), ra_u);"
      else ""}
       |    ${bodies.mkString}
       |  }
       |  ${locals.writeBack}
       |}
       |""".stripMargin
  }

  private def reload: String =
    values.reload + (if (popsFlags) "ra_flags = ra_d.state().flags();\n" else "") +
      "ra_dk = ra_d.keys().words();\n" + locals.reload
}

/**
 * Local variables that the rules of a kernel share, collected while these are written: arrays and maps of the loop's
 * state, and the accumulators that are read or written.
 */
private[paralagg] final class KernelLocals(stratum: StratumSpec, shape: Shape, ansi: Boolean, traced: Boolean) {
  val context = new CodegenContext
  private val declarations = mutable.LinkedHashMap.empty[String, String]
  private val accumulators = mutable.LinkedHashMap.empty[String, AccumulatorCode]

  /** Accumulators that rules write to; the others are only read. */
  private val written = mutable.LinkedHashSet.empty[String]

  def freshName(prefix: String): String = context.freshName(prefix)

  /** The local variable `name`, declared by `code` once a kernel. */
  def local(name: String, code: => String): String = {
    declarations.getOrElseUpdate(name, code)
    name
  }

  /** The local variable `name` for a map of keys of `arity` columns, by its class: the JIT sees through its methods then. */
  def keyMap(name: String, source: String, arity: Int): String = {
    val kind = if (arity == 1) JavaNames.LongKeyMap else JavaNames.TupleKeyMap
    local(name, s"$kind $name = ($kind) $source;\n")
  }

  def accumulator(name: String, source: => String, relation: Int, writes: Boolean): AccumulatorCode = {
    if (writes) written += name
    accumulators.getOrElseUpdate(
      name,
      new AccumulatorCode(
        name, source, stratum.relations(relation), shape.relations(relation), stratum.makesStrings, ansi, traced,
        context))
  }

  def declare: String = declarations.values.mkString + "\n" + accumulators.values.map(_.declare).mkString

  def reload: String = accumulators.values.map(_.reload).mkString

  def writeBack: String = written.toSeq.map(accumulators(_).writeBack).mkString
}

private[paralagg] object KernelLocals {

  /** Stands where arrays may have been replaced by larger ones: every local copy is read anew. */
  val Reload = "/*reload*/"
}
