package org.apache.spark.sql.paralagg.codegen

import org.apache.spark.sql.paralagg.plan.{FilterSpec, ProbeSpec, RuleSpec, StratumSpec}
import org.apache.spark.sql.paralagg.state.{Accumulator, Shape}

/**
 * The code of one rule for one row `u` of its driver. Steps nest: an inner step runs for each row of the outer one, and
 * the innermost passes the derived row to the head ([[HeadCode]]).
 *
 * @param position the rule's position in the stratum
 * @param driverValues the values of the driver's rows
 * @param contributes the row's values are stored for [[org.apache.spark.sql.paralagg.state.TargetSums]]
 */
private[paralagg] final class RuleBody(
    stratum: StratumSpec,
    shape: Shape,
    tasks: Int,
    rule: RuleSpec,
    position: Int,
    driverValues: AccumulatorCode,
    locals: KernelLocals,
    contributes: Boolean) {
  import Accumulator._

  private val variables = new RuleVariables(
    rule.expressions, rule.steps.toSeq.collect { case FilterSpec(condition) => condition }, rule.reads, locals.context)
  private val head = new HeadCode(stratum, shape, tasks, rule, position, variables, locals)

  def code: String = {
    val names = rule.driver.binds
    val binds = names.indices.filter(names(_) != null).map { c =>
      variables.bind(names(c), column(rule.driver.relation, "ra_dk", driverValues, "ra_u", c))
    }
    s"ra_rule$position: { ${binds.mkString} ${step(0, InnerPlace(Map.empty, TargetSide.Either, Map.empty))} }\n"
  }

  /** Returns the code that reads column `c` of a row: a key from the map's words, or a value. */
  private def column(relation: Int, keys: String, values: AccumulatorCode, id: String, c: Int): WordCode = {
    val form = shape.relations(relation)
    val k = stratum.relations(relation).keys.length
    if (c >= k) values.read(c - k, id)
    else {
      WordCode(
        s"$keys[$id * ${form.keyWords} + $c]",
        if (form.keys(c)) s"(($keys[$id * ${form.keyWords} + $k] >> $c & 1L) != 0L)" else "false")
    }
  }

  private def step(at: Int, place: InnerPlace): String =
    if (at == rule.steps.length) head.emit(place)
    else rule.steps(at) match {
      case FilterSpec(condition) =>
        val (code, passes) = variables.test(condition)
        s"$code\nif ($passes) { ${step(at + 1, place)} }\n"
      case p: ProbeSpec if p.recursive => probeRelation(p, at, place)
      case p: ProbeSpec => probeStatic(p, at, place)
    }

  /** Returns the code that looks up the keys' group, then runs `onGroup` or `missing`; a null key has no group. */
  private def lookup(p: ProbeSpec, map: String, onGroup: String => String, missing: String): String = {
    val (codes, words) = p.keys.map(variables.word).unzip
    val group = locals.freshName("g")
    val (fill, find) =
      if (words.length == 1) ("", s"$map.findWord(${words(0).word})")
      else {
        val n = p.keys.length
        val scratch = locals.local(s"ra_kb$n", s"long[] ra_kb$n = new long[$n];\n")
        (words.zipWithIndex.map { case (w, j) => s"$scratch[$j] = ${w.word};\n" }.mkString, s"$map.find($scratch)")
      }
    val noNull = words.filter(_.isNullable).map("!" + _.isNull)
    val guarded = if (noNull.isEmpty) find else s"(${noNull.mkString(" && ")}) ? $find : -1"
    s"${codes.mkString} $fill int $group = $guarded;\nif ($group >= 0) { ${onGroup(group)} } $missing\n"
  }

  private def probeStatic(p: ProbeSpec, at: Int, place: InnerPlace): String = {
    val index = s"ra_s${p.index}"
    locals.local(index, s"StaticIndex $index = ra_loop.staticIndex(${p.index});\n")
    val offsets = locals.local(s"${index}_o", s"int[] ${index}_o = $index.offsets();\n")
    def rows(group: String): String = p.kind match {
      case "semi" => step(at + 1, place)
      case "anti" => ""
      case _ => staticRows(p, at, place, group, offsets)
    }
    val missing = if (p.kind == "anti") s"else { ${step(at + 1, place)} }" else ""
    if (p.keys.isEmpty) s"if ($index.groups() > 0) { ${rows("0")} }\n"
    else if (p.aligned) {
      val any = s"ra_u + 1 < $offsets.length"
      val some = s"$any && $offsets[ra_u] < $offsets[ra_u + 1]"
      if (contributes && at == rule.steps.length - 1) s"if ($some) { ${head.contribute} }\n"
      else if (p.kind == "join") s"if ($any) { ${rows("ra_u")} }\n"
      else s"if ($some) { ${rows("ra_u")} } $missing\n"
    } else lookup(p, locals.keyMap(s"${index}_m", s"$index.keys()", p.keys.length), rows, missing)
  }

  /** Returns the next steps for each row of a group, in two loops if rows with targets on this task come first. */
  private def staticRows(p: ProbeSpec, at: Int, place: InnerPlace, group: String, offsets: String): String = {
    val index = s"ra_s${p.index}"
    val row = locals.freshName("p")
    val (early, ready) = if (at == rule.steps.length - 1) head.computeEarly(p) else ("", place.ready)
    val (first, end) = (locals.freshName("b"), locals.freshName("e"))
    def loop(from: String, until: String, side: TargetSide.Value): String = {
      val inside = InnerPlace(place.rowOf + (at -> row), side, ready)
      s"for (int $row = $from; $row < $until; $row++) { ${bindPayload(p, row)} ${step(at + 1, inside)} }\n"
    }
    val loops =
      if (at == rule.target.step && tasks > 1 && stratum.staticIndex(p.index).sortedBy.contains(position)) {
        val splits = locals.local(s"${index}_s", s"int[] ${index}_s = $index.splits();\n")
        val split = locals.freshName("m")
        val own = loop(first, split, TargetSide.Own)
        val remote = loop(split, end, TargetSide.Remote)
        s"int $split = $splits[$group];\n$own $remote"
      } else loop(first, end, place.side)
    s"int $first = $offsets[$group], $end = $offsets[$group + 1];\nif ($first < $end) { ra_work += $end - $first; $early $loops }\n"
  }

  private def bindPayload(p: ProbeSpec, row: String): String = {
    val index = s"ra_s${p.index}"
    val nulls = shape.staticPayload(p.index)
    val narrow = shape.narrowPayload(p.index)
    val read = stratum.staticIndex(p.index).read.filter(p.binds(_) != null)
    read.map { c =>
      val word = locals.column(s"${index}_v$c", s"$index.payload()[$c]", !narrow(c), row)
      val isNull =
        if (!nulls(c)) "false"
        else {
          // The array is null if only other tasks have nulls.
          val nullRows = locals.local(s"${index}_z$c", s"boolean[] ${index}_z$c = $index.nulls()[$c];\n")
          s"($nullRows != null && $nullRows[$row])"
        }
      variables.bind(p.binds(c), WordCode(s"((long) $word)", isNull))
    }.mkString
  }

  private def probeRelation(p: ProbeSpec, at: Int, place: InnerPlace): String = {
    val relation = stratum.relationIndex(p.index).relation
    val index = s"ra_r${p.index}"
    locals.local(index, s"RelationIndex $index = ra_loop.relationIndex(${p.index});\n")
    val heads = locals.local(s"${index}_h", s"int[] ${index}_h = $index.head();\n")
    val nexts = locals.local(s"${index}_n", s"int[] ${index}_n = $index.next();\n")
    val keys = locals.local(s"${index}_k", s"long[] ${index}_k = $index.part().keys().words();\n")
    val values = locals.accumulator(s"${index}_a", s"$index.part().state()", relation, writes = false)
    def rows(group: String): String = {
      val row = locals.freshName("t")
      val binds = p.binds.indices.filter(p.binds(_) != null).map { c =>
        variables.bind(p.binds(c), column(relation, keys, values, row, c))
      }
      val isRead =
        if (p.old) s"(${index}_a_f[$row] & ${Present | InDelta}) == $Present"
        else s"(${index}_a_f[$row] & $Present) != 0"
      val inner = s"if ($isRead) { ${binds.mkString} ${step(at + 1, place)} }"
      s"for (int $row = $heads[$group]; $row >= 0; $row = $nexts[$row]) { ra_work++; $inner }\n"
    }
    if (p.keys.isEmpty) s"if ($index.groups().size() > 0) { ${rows("0")} }\n"
    else lookup(p, locals.keyMap(s"${index}_m", s"$index.groups()", p.keys.length), rows, "")
  }
}

/**
 * The context of a position in the code.
 *
 * @param rowOf the local variable with the row of each static probe, by step
 * @param side the owner of the targets of these rows
 * @param ready values of the derived row that are computed already, by dependent column
 */
private[paralagg] case class InnerPlace(rowOf: Map[Int, String], side: TargetSide.Value, ready: Map[Int, WordCode])

/** The owner of targets resolved at load: this task, another task, or either. */
private[paralagg] object TargetSide extends Enumeration {
  val Own, Remote, Either = Value
}
