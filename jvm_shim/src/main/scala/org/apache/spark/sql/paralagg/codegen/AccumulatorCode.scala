package org.apache.spark.sql.paralagg.codegen

import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext
import org.apache.spark.sql.paralagg.load.Words
import org.apache.spark.sql.paralagg.plan.{Merge, RelationSpec}
import org.apache.spark.sql.paralagg.state.{Accumulator, Identity, RelationShape}
import org.apache.spark.sql.types._

/** A value in generated code: Java expressions of its word and of its null test ("false" if it is never null). */
case class WordCode(word: String, isNull: String) {
  def isNullable: Boolean = isNull != "false"
}

/**
 * Java source that aggregates into an [[Accumulator]] with its arrays in local variables. Deduplication and aggregation
 * are one pass over the rows.
 *
 *
 * @param name prefix of the local variables
 * @param comparesStrings words of strings are not in the order of the strings
 * @param traced each change records the row that it was derived from (`from` in the methods below)
 */
final class AccumulatorCode(
    name: String,
    source: String,
    relation: RelationSpec,
    shape: RelationShape,
    comparesStrings: Boolean,
    ansi: Boolean,
    traced: Boolean,
    context: CodegenContext) {
  import Accumulator._

  private val deps = relation.dependents
  private val nullable = shape.dependents

  def declare: String = s"Accumulator $name = $source;\n" +
    deps.indices.map(j => s"long[] ${v(j)} = $name.columns()[$j];\n").mkString +
    deps.indices.filter(nullable(_)).map(j => s"byte[] ${k(j)} = $name.valid()[$j];\n").mkString +
    s"byte[] ${name}_f = $name.flags(); int[] ${name}_d = $name.dirty(); int ${name}_n = $name.dirtySize();\n" +
    (if (traced) s"long[] ${name}_p = $name.parents();\n" else "")

  def reload: String =
    deps.indices.map(j => s"${v(j)} = $name.columns()[$j];\n").mkString +
      deps.indices.filter(nullable(_)).map(j => s"${k(j)} = $name.valid()[$j];\n").mkString +
      s"${name}_f = $name.flags(); ${name}_d = $name.dirty(); ${name}_n = $name.dirtySize();\n" +
      (if (traced) s"${name}_p = $name.parents();\n" else "")

  def writeBack: String = s"$name.dirtySize_$$eq(${name}_n);\n"

  /** Returns the code that reads column `j` of row `id`. */
  def read(j: Int, id: String): WordCode =
    WordCode(s"${v(j)}[$id]", if (nullable(j)) s"(${k(j)}[$id] == 0)" else "false")

  /** Returns the code that aggregates one row of a lattice, and marks `id` dirty if it changes. */
  def join(id: String, values: Array[WordCode], from: String): String = {
    val plain = !nullable.contains(true) && !deps.exists(d => d.isCarried || d.custom.isDefined)
    val body = new StringBuilder
    if (plain) {
      body ++= "boolean ra_ch = false;\n"
      deps.indices.foreach(j => body ++= improve(j, id, values(j).word))
      // A row that improves nothing may still be new, if all its values equal the identities.
      val identical = deps.indices.map(j => s"${values(j).word} == ${literal(Identity.of(deps(j)))}")
      body ++= s"if (!ra_ch${identical.map(" && " + _).mkString}) ra_ch = (${name}_f[$id] & $Present) == 0;\n"
    } else {
      body ++= s"boolean ra_ch = (${name}_f[$id] & $Present) == 0;\n"
      uses.foreach(first => body ++= combined(first, id, values, "ra_ch = true;"))
      chosen.foreach(j => body ++= choose(j, id, values))
    }
    s"""{ $body
       |  if (ra_ch) { ${mark(id, from)} }
       |}
       |""".stripMargin
  }

  /** Returns the code that adds one row to sums, other aggregates as in `join`, and always marks `id` dirty. */
  def add(id: String, values: Array[WordCode], from: String): String =
    if (!deps.exists(_.isSum)) join(id, values, from)
    else {
      val sums = deps.indices.filter(j => deps(j).isSum).map { j =>
        val plus = s"${v(j)}[$id] = ${sum(j, s"${v(j)}[$id]", values(j).word)};"
        val code = if (nullable(j)) s"$plus ${k(j)}[$id] = 1;" else plus
        if (values(j).isNullable) s"if (!${values(j).isNull}) { $code }\n" else code + "\n"
      }
      val rest = if (chosen.isEmpty) "" else s"boolean ra_ch = false;\n" + chosen.map(choose(_, id, values)).mkString
      val customCode = uses.map(combined(_, id, values, ""))
      s"""{ ${sums.mkString} $rest ${customCode.mkString}
         |  ${mark(id, from)}
         |}
         |""".stripMargin
    }

  /** Returns the code that adds a difference to a total, and marks a new or changed row dirty; `ra_tol` sums |Δ|. */
  def addChange(id: String, values: Array[WordCode], from: String): String = {
    val customCode = uses.map(combined(_, id, values, "ra_ch = true;")).mkString
    val each = customCode + deps.indices.filter(j => deps(j).isSum).map {
      j =>
        val w = values(j).word
        val cell = s"${v(j)}[$id]"
        val plus = s"long ra_z = ${sum(j, cell, w)}; if (ra_z != $cell) { $cell = ra_z; ra_ch = true; } " +
          s"ra_tol += ${magnitude(j, w)};"
        if (!nullable(j)) s"{ $plus }\n"
        else s"if (!${values(j).isNull}) { if (${k(j)}[$id] == 0) { ${k(j)}[$id] = 1; ra_ch = true; } $plus }\n"
    }.mkString
    s"""{ boolean ra_ch = (${name}_f[$id] & $Present) == 0;
       |  $each
       |  if (ra_ch) { ${mark(id, from)} }
       |}
       |""".stripMargin
  }

  /** Returns the code that reads the parent of a traced row. */
  def parent(id: String): String = if (traced) s"${name}_p[$id]" else "-1L"

  private def mark(id: String, from: String): String =
    s"byte ra_fl = ${name}_f[$id]; if ((ra_fl & $Listed) != $Listed) { " +
      s"if ((ra_fl & $Queued) == 0) ${name}_d[${name}_n++] = $id; ${name}_f[$id] = (byte) (ra_fl | $Listed); }" +
      (if (traced) s" ${name}_p[$id] = $from;" else "")

  private def v(j: Int): String = s"${name}_v$j"
  private def k(j: Int): String = s"${name}_k$j"
  private def literal(word: Long): String = if (word == Long.MinValue) "Long.MIN_VALUE" else s"${word}L"

  /** The columns that keep one of two values, without those that another column carries. */
  private val chosen = deps.indices.filterNot(j => deps(j).isSum || deps(j).isCarried || deps(j).custom.isDefined)

  /** Returns the code that stores a value if it is the first or a better one, with the columns that it carries. */
  private def choose(j: Int, id: String, values: Array[WordCode]): String = {
    val code =
      if (carried(j).nonEmpty) lexicographic(j, id, values)
      else if (nullable(j)) {
        s"if (${k(j)}[$id] == 0) { ${v(j)}[$id] = ${alone(j, values(j).word)}; ${k(j)}[$id] = 1; ra_ch = true; }\n" +
          s"else { ${improve(j, id, values(j).word)} }\n"
      } else improve(j, id, values(j).word)
    if (values(j).isNullable) s"if (!${values(j).isNull}) { $code }\n" else code
  }

  /** Returns the code that stores a value if it is better than the stored one. */
  private def improve(j: Int, id: String, y: String): String = {
    val old = s"${v(j)}[$id]"
    computed(j, old, y) match {
      case Some(merged) => s"{ long ra_z = $merged; if (ra_z != $old) { $old = ra_z; ra_ch = true; } }\n"
      case None => s"if (${better(j, y, old)}) { $old = $y; ra_ch = true; }\n"
    }
  }

  /** Returns the aggregate of a single value. */
  private def alone(j: Int, y: String): String = computed(j, literal(Identity.of(deps(j))), y).getOrElse(y)

  /** Returns the merged value of an aggregate that computes one, instead of choosing one of two. */
  private def computed(j: Int, a: String, b: String): Option[String] = deps(j).merging.merge match {
    case Merge.Operator(symbol) => Some(s"$a $symbol $b")
    case Merge.Method(name) => Some(s"Sums.$name($a, $b, ${deps(j).column.dataType.defaultSize})")
    case _ => None
  }

  /** The first columns of users' aggregators. */
  private val uses = deps.indices.filter(j => deps(j).custom.isDefined && deps(j).part == 0)

  /**
   * Returns the code that merges the columns from `first` on by the user's expressions, which Catalyst compiles. It
   * ignores a row with a null in one of them, and stores the first other row as it is.
   */
  private def combined(first: Int, id: String, values: Array[WordCode], onChange: String): String = {
    val custom = deps(first).custom.get
    val all = custom.columns.indices.map(first + _)
    val valid = all.filter(nullable(_)).map(j => s"${k(j)}[$id] = 1; ").mkString
    val isEmpty = if (nullable(first)) s"${k(first)}[$id] == 0" else s"(${name}_f[$id] & $Present) == 0"
    val store = all.map(j => s"${v(j)}[$id] = ${values(j).word}; ").mkString + valid + onChange
    val merge =
      CustomCode.merge(custom, all.map(j => s"${v(j)}[$id]"), all.map(values(_).word), onChange, context)
    val nulls = all.map(values(_)).filter(_.isNullable).map("!" + _.isNull)
    val put = s"if ($isEmpty) { $store } else { $merge }\n"
    if (nulls.isEmpty) put else s"if (${nulls.mkString(" && ")}) { $put }\n"
  }

  /** Returns the test whether `y` is better, in Spark's order, in which NaN is the largest number. */
  private def better(j: Int, y: String, old: String): String =
    less(deps(j).column.dataType, y, old, smaller = deps(j).merging.merge == Merge.Smaller)

  private def less(t: DataType, y: String, old: String, smaller: Boolean): String = t match {
    case DoubleType | FloatType =>
      val (a, b) = (Words.of(t).decode(y), Words.of(t).decode(old))
      if (smaller) s"($a < $b || ($b != $b && $a == $a))" else s"($a > $b || ($a != $a && $b == $b))"
    case _: StringType if comparesStrings => if (smaller) s"ra_strings.less($y, $old)" else s"ra_strings.less($old, $y)"
    case _ => if (smaller) s"$y < $old" else s"$y > $old"
  }

  private def carried(j: Int): Seq[Int] = deps.indices.filter(deps(_).order == j)

  /**
   * Returns the code for (order, carried…): a better order replaces all; on a tie the smallest carried value wins, with
   * what it carries itself. Null loses.
   */
  private def lexicographic(o: Int, id: String, values: Array[WordCode]): String = {
    val (y, old) = (values(o).word, s"${v(o)}[$id]")
    val empty = if (nullable(o)) s"${k(o)}[$id] == 0" else s"(${name}_f[$id] & $Present) == 0"
    val tie = carried(o).map(onTie(_, id, values)).mkString
    s"if ($empty || ${better(o, y, old)}) { ${replace(o, id, values)} }\nelse if ($y == $old) { $tie }\n"
  }

  private def replace(j: Int, id: String, values: Array[WordCode]): String = {
    val isNull = values(j).isNull
    val valid = if (isNull == "false") "1" else s"(byte) ($isNull ? 0 : 1)"
    s"${v(j)}[$id] = ${values(j).word}; ra_ch = true; " + (if (nullable(j)) s"${k(j)}[$id] = $valid; " else "") +
      carried(j).map(replace(_, id, values)).mkString
  }

  private def onTie(j: Int, id: String, values: Array[WordCode]): String = {
    val (y, old, isNull) = (values(j).word, s"${v(j)}[$id]", values(j).isNull)
    val empty = if (nullable(j)) s"(${k(j)}[$id] == 0)" else "false"
    val smaller = less(deps(j).column.dataType, y, old, smaller = true)
    val code = s"if (!$isNull && ($empty || $smaller)) { ${replace(j, id, values)} }\n"
    if (carried(j).isEmpty) code
    else
      s"$code else if ($isNull ? $empty : !$empty && $y == $old) { ${carried(j).map(onTie(_, id, values)).mkString} }\n"
  }

  private def sum(j: Int, a: String, b: String): String = deps(j).column.dataType match {
    case DoubleType => s"Double.doubleToRawLongBits(Double.longBitsToDouble($a) + Double.longBitsToDouble($b))"
    case FloatType => s"Sums.addFloat($a, $b)"
    case d: DecimalType => s"Sums.addDecimal($a, $b, ${d.precision})"
    case LongType => if (ansi) s"Sums.addLong($a, $b)" else s"($a + $b)"
    case t => s"Sums.addSmall($a, $b, ${t.defaultSize}, $ansi)"
  }

  private def magnitude(j: Int, w: String): String = deps(j).column.dataType match {
    case DoubleType | FloatType => s"Math.abs(${Words.of(deps(j).column.dataType).decode(w)})"
    case d: DecimalType => s"(Math.abs((double) $w) / ${math.pow(10, d.scale)})"
    case _ => s"Math.abs((double) $w)"
  }
}
