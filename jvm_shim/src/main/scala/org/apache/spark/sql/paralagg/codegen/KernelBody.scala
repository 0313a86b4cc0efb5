package org.apache.spark.sql.paralagg.codegen

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext
import org.apache.spark.sql.paralagg.plan.{RuleSpec, StratumSpec}
import org.apache.spark.sql.paralagg.state.{Accumulator, Shape}

/**
 * The code of one kernel: the local variables of its rules, then one loop over the driver's rows, with a block for each
 * rule ([[RuleBody]]).
 *
 * @param rules rules of the same driver, each with its position in the stratum
 */
private[paralagg] final class KernelBody(
    stratum: StratumSpec,
    shape: Shape,
    tasks: Int,
    ansi: Boolean,
    traced: Boolean,
    rules: Seq[(RuleSpec, Int)],
    contributes: Boolean) {
  private val driver = rules.head._1.driver
  private val isCopy = driver.index >= 0

  /** In place, a row that improves before it is read need not be queued again: reading it clears its flag. */
  private val popsFlags = stratum.inPlace && !isCopy
  private val driverPart =
    if (isCopy) s"ra_loop.relationIndex(${driver.index}).part()" else s"ra_loop.part(${driver.relation})"
  private val locals = new KernelLocals(stratum, shape, ansi, traced)
  private val values = new AccumulatorCode(
    "ra_dv", if (isCopy) "ra_d.state()" else "ra_d.driverValues()", stratum.relations(driver.relation),
    shape.relations(driver.relation), stratum.comparesStrings, ansi, traced, locals.context)

  def context: CodegenContext = locals.context

  val source: String = {
    val bodies = rules.map { case (rule, position) =>
      new RuleBody(stratum, shape, tasks, rule, position, values, locals, contributes).code
    }.map(_.replace(KernelLocals.Flush, s"${locals.writeBack} ra_derived.flush(); $reload")) // all locals are known now
    s"""public int run(LoopState ra_loop, int ra_from, int ra_to) {
       |  RelationPart ra_d = $driverPart;
       |  int[] ra_current = ra_d.current();
       |  long[] ra_dk = ra_d.keys().words();
       |  ${values.declare}
       |  ${if (popsFlags) "byte[] ra_flags = ra_d.state().flags();" else ""}
       |  Dictionary ra_strings = ra_loop.strings();
       |  long ra_work = 0;
       |  ${locals.declare}
       |  int ra_i = ra_from;
       |  for (; ra_i < ra_to && ra_work < ${Kernel.MaxWork}; ra_i++) {
       |    int ra_u = ra_current[ra_i];
       |    ${if (popsFlags) s"ra_flags[ra_u] &= ~${Accumulator.Queued};" else ""}
       |    ${if (traced) s"long ra_origin = $origin;" else ""}
       |    ${bodies.mkString}
       |  }
       |  ${locals.writeBack}
       |  ra_loop.work_$$eq(ra_loop.work() + ra_work);
       |  return ra_i;
       |}
       |""".stripMargin
  }

  /** The address of the driver's row; the copy of a hub's row has that of its owner's as its parent (`HubRows`). */
  private def origin: String =
    if (isCopy && stratum.inPlace) values.parent("ra_u") else s"RowAddress.of(${driver.relation}, ra_loop.me(), ra_u)"

  private def reload: String =
    values.reload + (if (popsFlags) "ra_flags = ra_d.state().flags();\n" else "") +
      "ra_dk = ra_d.keys().words();\n" + locals.reload
}

/**
 * The local variables that the rules of a kernel share, collected during generation: arrays and maps of the loop's
 * state, and the accumulators that rules read or write.
 */
private[paralagg] final class KernelLocals(stratum: StratumSpec, shape: Shape, ansi: Boolean, val traced: Boolean) {
  val context = new CodegenContext
  private val declarations = mutable.LinkedHashMap.empty[String, String]
  private val accumulators = mutable.LinkedHashMap.empty[String, AccumulatorCode]

  /** The accumulators that rules write to. */
  private val written = mutable.LinkedHashSet.empty[String]

  def freshName(prefix: String): String = context.freshName(prefix)

  /** Returns the local variable `name`, which `code` declares once a kernel. */
  def local(name: String, code: => String): String = {
    declarations.getOrElseUpdate(name, code)
    name
  }

  /** Returns the local variable `name` for a map of keys; its concrete class lets the JIT inline its methods. */
  def keyMap(name: String, source: String, arity: Int): String = {
    val kind = if (arity == 1) "LongKeyMap" else "TupleKeyMap"
    local(name, s"$kind $name = ($kind) $source;\n")
  }

  /** Returns the code that reads a row of a static side's [[org.apache.spark.sql.paralagg.state.Column]]. */
  def column(name: String, source: String, isWide: Boolean, row: String): String = {
    local(name, s"Object $name = $source.base(); long ${name}_o = $source.offset();\n")
    if (isWide) s"Platform.getLong($name, ${name}_o + 8L * $row)" else s"Platform.getInt($name, ${name}_o + 4L * $row)"
  }

  def accumulator(name: String, source: => String, relation: Int, writes: Boolean): AccumulatorCode = {
    if (writes) written += name
    accumulators.getOrElseUpdate(
      name,
      new AccumulatorCode(
        name, source, stratum.relations(relation), shape.relations(relation), stratum.comparesStrings, ansi, traced,
        context))
  }

  def declare: String = declarations.values.mkString + "\n" + accumulators.values.map(_.declare).mkString

  def reload: String = accumulators.values.map(_.reload).mkString

  def writeBack: String = written.toSeq.map(accumulators(_).writeBack).mkString
}

private[paralagg] object KernelLocals {

  /** The placeholder for code that aggregates the rows of `ra_derived`, then reloads all arrays: some may be new. */
  val Flush = "/*flush*/"
}
