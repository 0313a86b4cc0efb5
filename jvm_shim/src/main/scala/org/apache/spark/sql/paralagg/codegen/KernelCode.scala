package org.apache.spark.sql.paralagg.codegen

import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.paralagg.load.{Dictionary, DoubleWord, FloatWord, StringWord}
import org.apache.spark.sql.paralagg.plan.{RuleSpec, StratumSpec}
import org.apache.spark.sql.paralagg.state.{
  Accumulator, Combiner, DerivedRows, LongKeyMap, LoopState, RelationIndex, RelationPart, RowAddress, Shape,
  StaticIndex, TargetSums, TupleKeyMap
}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/**
 * The Java source of the loop's inner parts, which Janino compiles as for Spark's own code (docs/design.md, "Data in
 * the loop"). Catalyst's `genCode` generates the expressions, with `currentVars` bound to the loop's locals, so they
 * have exactly Spark's semantics.
 *
 * Catalyst's code declares locals with plain names (`d`, `c`, `i`) and fresh ones (`value_3`). Janino refuses a name
 * that is declared twice, so a local of this package is fresh or begins with `ra_`.
 *
 * The source has no ids of a run. So the second run of a query finds the class in Spark's cache, already compiled by
 * the JIT.
 */
final class KernelCode(stratum: StratumSpec, shape: Shape, tasks: Int, val ansi: Boolean, traced: Boolean) {

  def combiner(relation: Int, strings: Dictionary): Combiner = {
    val spec = stratum.relations(relation)
    val form = shape.relations(relation)
    val context = new CodegenContext
    val acc = new AccumulatorCode("ra_a", "ra_into", spec, form, stratum.comparesStrings, ansi, traced, context)
    val from = new AccumulatorCode("ra_b", "ra_from", spec, form, stratum.comparesStrings, ansi, traced, context)
    val dictionary = s"Dictionary ra_strings = ${context.addReferenceObj("strings", strings)};"
    val maskAt = spec.dependents.length
    // The last word of a traced row is its parent.
    val origin = s"ra_rows[ra_at + ${maskAt + (if (form.dependents.contains(true)) 1 else 0)}]"
    val fromRows = spec.dependents.indices.map { j =>
      val isNull = if (form.dependents(j)) s"((ra_rows[ra_at + $maskAt] >> $j & 1L) != 0L)" else "false"
      WordCode(s"ra_rows[ra_at + $j]", isNull)
    }.toArray
    val fromAccumulator = spec.dependents.indices.map(j => from.read(j, "ra_id")).toArray
    compile(
      "Combiner",
      s"""public void rows(
         |    Accumulator ra_into, int[] ra_ids, long[] ra_rows, int ra_at, int ra_stride, int ra_count) {
         |  $dictionary
         |  ${acc.declare}
         |  for (int ra_i = 0; ra_i < ra_count; ra_i++) {
         |    int ra_id = ra_ids[ra_i];
         |    ${if (stratum.isLattice) acc.join("ra_id", fromRows, origin) else acc.add("ra_id", fromRows, origin)}
         |    ra_at += ra_stride;
         |  }
         |  ${acc.writeBack}
         |}
         |public double apply(Accumulator ra_from, Accumulator ra_into) {
         |  $dictionary
         |  double ra_tol = 0.0;
         |  ${from.declare}
         |  ${acc.declare}
         |  for (int ra_i = 0; ra_i < ra_b_n; ra_i++) {
         |    int ra_id = ra_b_d[ra_i];
         |    ${if (stratum.isAccumulating) acc.addChange("ra_id", fromAccumulator, from.parent("ra_id"))
        else if (stratum.isLattice) acc.join("ra_id", fromAccumulator, from.parent("ra_id"))
        else "" /* iterated: the pending rows become the rows */}
         |  }
         |  ${acc.writeBack}
         |  return ra_tol;
         |}
         |""".stripMargin,
      context).asInstanceOf[Combiner]
  }

  /**
   * Compiles the rules of one driver, fused into one pass over its rows. With `contributes` it is a rule that adds by
   * target, and its values are stored for [[TargetSums]].
   */
  def kernel(rules: Seq[(RuleSpec, Int)], contributes: Boolean = false): Kernel = {
    val body = new KernelBody(stratum, shape, tasks, ansi, traced, rules, contributes)
    compile("Kernel", body.source, body.context).asInstanceOf[Kernel]
  }

  /** Tests whether sums of a rule may be added up by target: none is null in this run, and no parents are traced. */
  def mayAddByTarget(rule: RuleSpec): Boolean =
    rule.addsByTarget && !traced && !shape.relations(rule.head).dependents.contains(true)

  private def compile(parent: String, methods: String, context: CodegenContext): Any = {
    val source = s"""
      ${KernelCode.Imports}
      public java.lang.Object generate(Object[] references) { return new Generated(references); }
      final class Generated extends $parent {
        private Object[] references;
        ${context.declareMutableStates()}
        public Generated(Object[] references) {
          this.references = references;
          ${context.initMutableStates()}
        }
        $methods
        ${context.declareAddedFunctions()}
      }"""
    val code = CodeFormatter.stripOverlappingComments(new CodeAndComment(source, context.getPlaceHolderToComments()))
    CodeGenerator.compile(code)._1.generate(context.references.toArray)
  }
}

object KernelCode {

  /** Imports for generated code, which is in a package of Catalyst. It calls methods of objects as static ones. */
  private val Imports = Seq[Class[_]](
    classOf[Accumulator], classOf[Combiner], classOf[DerivedRows], classOf[Dictionary], DoubleWord.getClass,
    FloatWord.getClass,
    classOf[Kernel], classOf[LongKeyMap], classOf[LoopState], classOf[Murmur3_x86_32], classOf[Platform],
    classOf[RelationIndex],
    classOf[RelationPart], RowAddress.getClass, classOf[StaticIndex], StringWord.getClass, Sums.getClass,
    classOf[TargetSums], classOf[TupleKeyMap])
    .map(c => s"import ${c.getName.stripSuffix("$")};\n").mkString
}
