package org.apache.spark.sql.paralagg.codegen

import org.apache.spark.sql.paralagg.load.{IntHashed, StringWord, Words}
import org.apache.spark.sql.paralagg.plan.{ColumnSpec, ProbeSpec, RuleSpec, RuleVariable, StratumSpec}
import org.apache.spark.sql.paralagg.state.Shape

/**
 * The innermost code of a rule, which aggregates the derived row into its target, a row of this task or a ghost. By the
 * Plan the target is the driver's row, or was resolved at load, or its key is computed and hashed in the loop.
 */
private[paralagg] final class HeadCode(
    stratum: StratumSpec,
    shape: Shape,
    tasks: Int,
    rule: RuleSpec,
    position: Int,
    variables: RuleVariables,
    locals: KernelLocals) {
  private val spec = stratum.relations(rule.head)
  private val form = shape.relations(rule.head)
  private val (keyExprs, valueExprs) = rule.emit.splitAt(spec.keys.length)

  /**
   * Returns code and words of the values that do not depend on the last probe, to compute once a group instead of once
   * a row. The probe's variables may be bound already, since steps are generated twice if targets are split.
   */
  def computeEarly(last: ProbeSpec): (String, Map[Int, WordCode]) = {
    val early = valueExprs.indices.filter { j =>
      val names = valueExprs(j).collect { case v: RuleVariable => v.name }
      !valueExprs(j).isInstanceOf[RuleVariable] && names.forall(n => variables.isBound(n) && !last.binds.contains(n))
    }
    val (codes, words) = early.map(j => variables.word(valueExprs(j))).unzip
    (codes.mkString, early.zip(words).toMap)
  }

  def emit(place: InnerPlace): String = {
    val (codes, values) =
      valueExprs.indices.map(j =>
        place.ready.get(j).map(("", _)).getOrElse(variables.word(valueExprs(j)))).toArray.unzip
    def own = locals.accumulator(s"ra_h${rule.head}", s"ra_loop.part(${rule.head}).pending()", rule.head, writes = true)
    val put = rule.target.kind match {
      case "same" => combine(own, "ra_u", values)
      case "resolved" => resolved(place, own, values)
      case _ => computed(values)
    }
    codes.mkString + put
  }

  /** Returns the code that stores the values as the contribution of the driver's row to each of its targets. */
  def contribute: String = {
    val sums = locals.local(s"ra_y$position", s"TargetSums ra_y$position = ra_loop.targetSums()[$position];\n")
    valueExprs.indices.map { j =>
      val given = locals.local(s"${sums}_$j", s"double[] ${sums}_$j = $sums.given()[$j];\n")
      val (code, value) = variables.word(valueExprs(j))
      s"$code $given[ra_u] = Double.longBitsToDouble(${value.word});\n"
    }.mkString + s"$sums.contributed_$$eq($sums.contributed() + 1);\n"
  }

  private def combine(acc: AccumulatorCode, id: String, values: Array[WordCode]): String =
    if (stratum.isLattice) acc.join(id, values, "ra_origin") else acc.add(id, values, "ra_origin")

  private def ghosts: AccumulatorCode =
    locals.accumulator(s"ra_g${rule.head}", s"ra_loop.part(${rule.head}).ghost()", rule.head, writes = true)

  /** Returns the code for a target that the row of a probe determines; ghosts are complements of their ids. */
  private def resolved(place: InnerPlace, own: AccumulatorCode, values: Array[WordCode]): String = {
    val target = locals.freshName("h")
    val row = place.rowOf(rule.target.step)
    val word = locals.column(s"ra_t$position", s"ra_loop.resolved()[$position]", isWide = false, row)
    val declared = s"int $target = $word;\n"
    if (tasks == 1 || place.side == TargetSide.Own) declared + combine(own, target, values)
    else {
      val ghost = locals.freshName("gh")
      if (place.side == TargetSide.Remote) s"$declared int $ghost = ~$target; ${combine(ghosts, ghost, values)}"
      else {
        s"""$declared if ($target >= 0) { ${combine(own, target, values)} } else {
           |  int $ghost = ~$target; ${combine(ghosts, ghost, values)} }
           |""".stripMargin
      }
    }
  }

  /** Returns the code that computes the head's key and gathers the row; its owner is by Catalyst's hash. */
  private def computed(values: Array[WordCode]): String = {
    val (codes, words) = keyExprs.map(variables.word).unzip
    val origin = if (locals.traced) Some("ra_origin") else None
    val row = words.map(unlessNull) ++ nullMask(words, form.hasNullKeys) ++
      values.map(_.word) ++ nullMask(values, form.dependents.contains(true)) ++ origin
    def put(kind: String, row: Array[String]): String = {
      val rows = locals.local(
        s"ra_${kind}${rule.head}", s"DerivedRows ra_$kind${rule.head} = ra_loop.$kind()[${rule.head}];\n")
      val array = locals.local(s"${rows}_w", s"long[] ${rows}_w = $rows.words();\n")
      val at = locals.freshName("at")
      s"int $at = $rows.end();\n" + row.zipWithIndex.map { case (w, j) => s"$array[$at + $j] = $w;\n" }.mkString +
        s"if (!$rows.add()) { DerivedRows ra_derived = $rows; ${KernelLocals.Flush} }\n"
    }
    val own = put("derived", row)
    val placed =
      if (tasks == 1 || rule.target.local) own
      else {
        val owner = locals.freshName("owner")
        val task = if (spec.distributeBy.isEmpty) "0" else s"Math.floorMod(${hash(words)}, $tasks)"
        s"int $owner = $task;\nif ($owner == ra_loop.me()) { $own } else { ${put("derivedGhosts", row :+ owner)} }\n"
      }
    codes.mkString + placed
  }

  private def unlessNull(w: WordCode): String = if (w.isNullable) s"(${w.isNull} ? 0L : ${w.word})" else w.word

  /** Returns the word with a bit for each null, if rows have one. */
  private def nullMask(columns: Array[WordCode], hasMask: Boolean): Option[String] = {
    val bits = columns.zipWithIndex.filter(_._1.isNullable).map { case (w, j) => s"(${w.isNull} ? ${1L << j}L : 0L)" }
    if (!hasMask) None else Some(if (bits.isEmpty) "0L" else bits.mkString(" | "))
  }

  /** Returns Catalyst's hash of the distribution columns, each chained into the next; nulls do not change it. */
  private def hash(words: Array[WordCode]): String = spec.distributeBy.foldLeft(Words.Seed.toString) { (seed, k) =>
    val chained = hash(spec.keys(k), words(k).word, seed)
    if (words(k).isNullable) s"(${words(k).isNull} ? $seed : $chained)" else chained
  }

  private def hash(column: ColumnSpec, word: String, seed: String): String = Words.of(column.dataType) match {
    case StringWord => s"StringWord.hash($word, $seed, ra_strings)"
    case _: IntHashed => s"Murmur3_x86_32.hashInt((int) $word, $seed)"
    case _ => s"Murmur3_x86_32.hashLong($word, $seed)"
  }
}
