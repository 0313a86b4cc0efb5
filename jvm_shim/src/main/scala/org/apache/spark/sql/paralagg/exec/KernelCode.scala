package org.apache.spark.sql.paralagg.exec

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression}
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.paralagg.plan._

/**
 * Java source of the loop's inner parts, compiled by Janino as Spark compiles its own (design section 5, "Data in the
 * loop"). Expressions come from Catalyst's `genCode` with `currentVars` bound to the loop's locals, so they mean exactly
 * what Spark means.
 *
 * The source holds no ids of a run: the second run of a query finds the class in Spark's cache, compiled by the JIT already.
 */
final class KernelCode(stratum: StratumSpec, shape: Shape, tasks: Int, ansi: Boolean, traced: Boolean) {
  import KernelCode._
  private val pkg = "org.apache.spark.sql.paralagg.exec"

  def combiner(relation: Int): Combiner = {
    val spec = stratum.relations(relation)
    val form = shape.relations(relation)
    val acc = new AccumulatorCode("a", "into", spec, form, ansi, traced)
    val from = new AccumulatorCode("b", "from", spec, form, ansi, traced)
    val maskAt = spec.dependents.length
    val origin = s"rows[at + ${maskAt + (if (form.dependents.contains(true)) 1 else 0)}]" // last word of a traced row
    val fromRows = spec.dependents.indices.map { j =>
      WordCode(s"rows[at + $j]", if (form.dependents(j)) s"((rows[at + $maskAt] >> $j & 1L) != 0L)" else "false")
    }.toArray
    val fromAccumulator = spec.dependents.indices.map(j => from.read(j, "id")).toArray
    compile(
      "Combiner",
      s"""public void rows($pkg.Accumulator into, int[] ids, long[] rows, int at, int stride, int count) {
         |  ${acc.declare}
         |  for (int i = 0; i < count; i++) {
         |    int id = ids[i];
         |    ${if (stratum.isLattice) acc.join("id", fromRows, origin) else acc.add("id", fromRows, origin)}
         |    at += stride;
         |  }
         |  ${acc.writeBack}
         |}
         |public double apply($pkg.Accumulator from, $pkg.Accumulator into) {
         |  double tol = 0.0;
         |  ${from.declare}
         |  ${acc.declare}
         |  for (int i = 0; i < b_n; i++) {
         |    int id = b_d[i];
         |    ${if (stratum.isAccumulating) acc.addChange("id", fromAccumulator, from.parent("id"))
        else if (stratum.isLattice) acc.join("id", fromAccumulator, from.parent("id"))
        else "" /* iterated: the pending rows become the rows */}
         |  }
         |  ${acc.writeBack}
         |  return tol;
         |}
         |""".stripMargin,
      new CodegenContext).asInstanceOf[Combiner]
  }

  /** All rules that start from the same rows, fused into one pass over them. */
  def kernel(rules: Seq[(RuleSpec, Int)]): Kernel = {
    val body = new KernelBody(rules)
    compile("Kernel", body.source, body.context).asInstanceOf[Kernel]
  }

  private def compile(parent: String, methods: String, context: CodegenContext): Any = {
    val source = s"""
      public java.lang.Object generate(Object[] references) { return new Generated(references); }
      final class Generated extends $pkg.$parent {
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

  /** The code of one kernel: declarations are collected while the rules are written. */
  private final class KernelBody(rules: Seq[(RuleSpec, Int)]) {
    val context = new CodegenContext
    private val declarations = mutable.LinkedHashMap.empty[String, String]
    private val accumulators = mutable.LinkedHashMap.empty[String, AccumulatorCode]
    private var slots = Vector.empty[ExprCode]
    private val driver = rules.head._1.driver
    private val driverSpec = stratum.relations(driver.relation)
    private val driverShape = shape.relations(driver.relation)
    private val isCopy = driver.index >= 0 && stratum.relationIndex(driver.index).copy
    private val driverPart =
      if (isCopy) s"loop.relationIndex(${driver.index}).part()" else s"loop.part(${driver.relation})"
    private val driverAcc =
      new AccumulatorCode("dv", if (isCopy) "d.state()" else "d.driverValues()", driverSpec, driverShape, ansi, traced)

    lazy val source: String = {
      val bodies = rules.map { case (rule, position) => new RuleBody(rule, position).code }
        .map(_.replace(Reload, reloadAll))
      s"""public void run($pkg.LoopState loop, int from, int to) {
         |  $pkg.RelationPart d = $driverPart;
         |  int[] current = d.current();
         |  long[] dk = d.keys().words();
         |  ${driverAcc.declare}
         |  ${if (popsFlags) "byte[] flags = d.state().flags();" else ""}
         |  UTF8String[] strings = loop.strings();
         |  ${declarations.values.mkString}
         |  ${accumulators.values.map(_.declare).mkString}
         |  for (int i = from; i < to; i++) {
         |    int u = current[i];
         |    ${if (popsFlags) "flags[u] &= ~1;" else ""}
         |    ${if (traced) s"long origin = $pkg.CycleTrace.node(${driver.relation}, loop.me(), u);" else ""}
         |    ${bodies.mkString}
         |  }
         |  ${written.toSeq.map(accumulators(_).writeBack).mkString}
         |}
         |""".stripMargin
    }

    /** In place, a row that improves before its turn need not be queued again: its flag falls when it is read. */
    private val popsFlags = stratum.inPlace && !isCopy

    private def reloadAll: String =
      driverAcc.reload + (if (popsFlags) "flags = d.state().flags();\n" else "") + "dk = d.keys().words();\n" +
        accumulators.values.map(_.reload).mkString

    private def declare(name: String, code: => String): String = {
      declarations.getOrElseUpdate(name, code)
      name
    }

    /** Accumulators that rules write to; the others are only read. */
    private val written = mutable.LinkedHashSet.empty[String]

    private def accumulator(name: String, source: => String, relation: Int, writes: Boolean): AccumulatorCode = {
      if (writes) written += name
      accumulators.getOrElseUpdate(
        name,
        new AccumulatorCode(name, source, stratum.relations(relation), shape.relations(relation), ansi, traced))
    }

    private final class RuleBody(rule: RuleSpec, position: Int) {
      private val variables = mutable.Map.empty[String, WordCode]
      private val typed = mutable.Map.empty[String, Int]
      private val evaluated = KernelCode.evaluated(stratum, rule)
      private val needsType: Set[String] = {
        evaluated.flatMap {
          case PlainVariable(_) => Nil
          case e => e.collect { case v: RuleVariable => v.name }
        }.toSet ++ rule.steps.collect { case FilterSpec(PlainVariable(name)) => name }
      }
      private val types: Map[String, RuleVariable] =
        evaluated.flatMap(_.collect { case v: RuleVariable => v.name -> v }).toMap

      def code: String = {
        val binds = driver.binds.length match {
          case n => (0 until n).filter(rule.driver.binds(_) != null).map { c =>
              bind(rule.driver.binds(c), column(driverSpec, driverShape, "dk", driverAcc, "u", c))
            }
        }
        s"rule$position: { ${binds.mkString} ${step(0)} }\n"
      }

      /** Column `c` of a row of a relation: a key from the map's words, or a value. */
      private def column(
          spec: RelationSpec, form: RelationShape, keys: String, values: AccumulatorCode, id: String, c: Int)
          : WordCode = {
        val k = spec.keys.length
        if (c >= k) values.read(c - k, id)
        else {
          WordCode(
            s"$keys[$id * ${form.keyWords} + $c]",
            if (form.keys(c)) s"(($keys[$id * ${form.keyWords} + $k] >> $c & 1L) != 0L)" else "false")
        }
      }

      /** Gives the variable a local for its word, and one for its value where an expression reads it. */
      private def bind(name: String, code: WordCode): String = types.get(name).fold("") { variable =>
        val local = context.freshName("x")
        val isNull = if (code.isNullable) s"${local}_null" else "false"
        variables(name) = WordCode(s"${local}_w", isNull)
        val declared =
          s"long ${local}_w = ${code.word};\n" + (if (isNull == "false") "" else s"boolean $isNull = ${code.isNull};\n")
        if (!needsType(name)) declared
        else {
          val t = Words.of(variable.dataType)
          slots :+= ExprCode(
            EmptyBlock,
            if (isNull == "false") FalseLiteral else JavaCode.isNullVariable(isNull),
            JavaCode.variable(local, variable.dataType))
          typed(name) = slots.length - 1
          val value =
            if (isNull == "false" || t.javaType != "UTF8String") t.decode(s"${local}_w")
            else s"($isNull ? null : ${t.decode(s"${local}_w")})"
          s"$declared ${t.javaType} $local = $value;\n"
        }
      }

      /** Code that computes `e`, and its word; a plain variable is just its word. */
      private def word(e: Expression): (String, WordCode) = e match {
        case PlainVariable(name) => ("", variables(name))
        case _ =>
          val value = generate(e)
          val t = Words.of(e.dataType)
          val local = context.freshName("w")
          val isNull = if (value.isNull == FalseLiteral) "false" else value.isNull.toString
          val encoded = t.encode(value.value.toString)
          val code = if (isNull == "false") encoded else s"($isNull ? 0L : $encoded)"
          (s"${value.code}\nlong $local = $code;\n", WordCode(local, isNull))
      }

      private def generate(e: Expression): ExprCode = {
        val bound = e.transform { case v: RuleVariable =>
          BoundReference(typed(v.name), v.dataType, variables(v.name).isNullable)
        }
        context.currentVars = slots
        context.INPUT_ROW = null
        bound.genCode(context)
      }

      private def step(at: Int): String =
        if (at == rule.steps.length) emit()
        else rule.steps(at) match {
          case FilterSpec(condition) =>
            val test = generate(condition)
            val passes = if (test.isNull == FalseLiteral) s"${test.value}" else s"!${test.isNull} && ${test.value}"
            s"${test.code}\nif ($passes) { ${step(at + 1)} }\n"
          case p: ProbeSpec if p.recursive => probeRelation(p, at)
          case p: ProbeSpec => probeStatic(p, at)
        }

      /** Runs `body` for the group `g` of the keys; a null key has none. */
      private def lookup(p: ProbeSpec, map: String, found: String => String, missing: String): String = {
        val (codes, words) = p.keys.map(word).unzip
        val group = context.freshName("g")
        val find =
          if (words.length == 1) s"$map.findWord(${words(0).word})"
          else {
            val scratch = declare(s"kb${p.keys.length}", s"long[] kb${p.keys.length} = new long[${p.keys.length}];\n")
            s"$map.find($scratch)"
          }
        val fill = if (words.length == 1) ""
        else words.zipWithIndex.map { case (w, j) => s"kb${p.keys.length}[$j] = ${w.word};\n" }.mkString
        val noNull = words.filter(_.isNullable).map("!" + _.isNull)
        val guarded = if (noNull.isEmpty) find else s"(${noNull.mkString(" && ")}) ? $find : -1"
        s"${codes.mkString} $fill int $group = $guarded;\nif ($group >= 0) { ${found(group)} } $missing\n"
      }

      private def probeStatic(p: ProbeSpec, at: Int): String = {
        val index = s"s${p.index}"
        declare(index, s"$pkg.StaticIndex $index = loop.staticIndex(${p.index});\n")
        val offsets = declare(s"${index}_o", s"int[] ${index}_o = $index.offsets();\n")
        def rows(group: String): String = p.kind match {
          case "semi" => step(at + 1)
          case "anti" => ""
          case _ =>
            val row = context.freshName("p")
            val early = if (at == rule.steps.length - 1) computeEarly() else ""
            val nulls = shape.staticPayload(p.index)
            def binds(): String = p.binds.indices.filter(p.binds(_) != null).map { c =>
              val payload = declare(s"${index}_v$c", s"long[] ${index}_v$c = $index.payload()[$c];\n")
              val isNull =
                if (!nulls(c)) "false"
                else {
                  // This task may have none of the nulls that others met.
                  val holes = declare(s"${index}_z$c", s"boolean[] ${index}_z$c = $index.nulls()[$c];\n")
                  s"($holes != null && $holes[$row])"
                }
              bind(p.binds(c), WordCode(s"$payload[$row]", isNull))
            }.mkString
            rowOf(at) = row
            val (first, end) = (context.freshName("b"), context.freshName("e"))
            def loop(from: String, until: String): String =
              s"for (int $row = $from; $row < $until; $row++) { ${binds()} ${step(at + 1)} }\n"
            val loops =
              if (splittingRule(stratum, p.index, tasks).contains(position)) {
                val splits = declare(s"${index}_s", s"int[] ${index}_s = $index.splits();\n")
                val split = context.freshName("m")
                side = Own
                val own = loop(first, split)
                side = Remote
                val remote = loop(split, end)
                side = Either
                s"int $split = $splits[$group];\n$own $remote"
              } else loop(first, end)
            s"int $first = $offsets[$group], $end = $offsets[$group + 1];\nif ($first < $end) { $early $loops }\n"
        }
        val missing = if (p.kind == "anti") s"else { ${step(at + 1)} }" else ""
        if (p.keys.isEmpty) s"if ($index.groups() > 0) { ${rows("0")} }\n"
        else if (isAligned(stratum, rule, at)) {
          val any = s"u + 1 < $offsets.length"
          if (p.kind == "join") s"if ($any) { ${rows("u")} }\n"
          else s"if ($any && $offsets[u] < $offsets[u + 1]) { ${rows("u")} } $missing\n"
        } else lookup(p, keyMap(s"${index}_m", s"$index.keys()", p.keys.length), rows, missing)
      }

      private val rowOf = mutable.Map.empty[Int, String]

      /** Whose rows the targets are at this place of the code. */
      private var side = Either

      private def keyMap(name: String, source: String, arity: Int): String = {
        val kind = if (arity == 1) "LongKeyMap" else "TupleKeyMap"
        declare(name, s"$pkg.$kind $name = ($pkg.$kind) $source;\n")
      }

      private def probeRelation(p: ProbeSpec, at: Int): String = {
        val spec = stratum.relationIndex(p.index)
        val relation = stratum.relations(spec.relation)
        val form = shape.relations(spec.relation)
        val index = s"r${p.index}"
        declare(index, s"$pkg.RelationIndex $index = loop.relationIndex(${p.index});\n")
        val heads = declare(s"${index}_h", s"int[] ${index}_h = $index.head();\n")
        val nexts = declare(s"${index}_n", s"int[] ${index}_n = $index.next();\n")
        val keys = declare(s"${index}_k", s"long[] ${index}_k = $index.part().keys().words();\n")
        val values = accumulator(s"${index}_a", s"$index.part().state()", spec.relation, writes = false)
        def rows(group: String): String = {
          val row = context.freshName("t")
          val binds = p.binds.indices.filter(p.binds(_) != null).map { c =>
            bind(p.binds(c), column(relation, form, keys, values, row, c))
          }
          val wanted = if (p.old) s"(${index}_a_f[$row] & 6) == 2" else s"(${index}_a_f[$row] & 2) != 0"
          s"for (int $row = $heads[$group]; $row >= 0; $row = $nexts[$row]) { if ($wanted) { ${binds.mkString} ${step(at + 1)} } }\n"
        }
        if (p.keys.isEmpty) s"if ($index.groups().size() > 0) { ${rows("0")} }\n"
        else lookup(p, keyMap(s"${index}_m", s"$index.groups()", p.keys.length), rows, "")
      }

      private val (keyExprs, valueExprs) = rule.emit.splitAt(stratum.relations(rule.head).keys.length)
      private val ready = mutable.Map.empty[Int, WordCode]

      /** Values that the last probe does not change are computed once a group, not once a row of it. */
      private def computeEarly(): String = valueExprs.indices.map { j =>
        val names = valueExprs(j).collect { case v: RuleVariable => v.name }
        valueExprs(j) match {
          case e if !e.isInstanceOf[RuleVariable] && names.forall(variables.contains) =>
            val (code, value) = word(e)
            ready(j) = value
            code
          case _ => ""
        }
      }.mkString

      private def emit(): String = {
        val head = stratum.relations(rule.head)
        val form = shape.relations(rule.head)
        val (valueCodes, values) =
          valueExprs.indices.map(j => ready.get(j).map(("", _)).getOrElse(word(valueExprs(j)))).toArray.unzip
        val own = accumulator(s"h${rule.head}", s"loop.part(${rule.head}).pending()", rule.head, writes = true)
        def combine(acc: AccumulatorCode, id: String): String =
          if (stratum.isLattice) acc.join(id, values, "origin") else acc.add(id, values, "origin")
        val put = rule.target.kind match {
          case "same" => combine(own, "u")
          case "resolved" =>
            val targets = declare(s"t$position", s"int[] t$position = loop.resolved()[$position];\n")
            val target = context.freshName("h")
            val local = s"int $target = $targets[${rowOf(rule.target.step)}];\n"
            if (tasks == 1 || side == Own) local + combine(own, target)
            else if (side == Remote) {
              val ghost = context.freshName("gh")
              s"$local int $ghost = ~$target; ${combine(ghosts, ghost)}"
            } else {
              val ghost = context.freshName("gh")
              s"""$local if ($target >= 0) { ${combine(own, target)} } else {
                 |  int $ghost = ~$target; ${combine(ghosts, ghost)} }
                 |""".stripMargin
            }
          case _ => computed(keyExprs, head, form, own, combine)
        }
        valueCodes.mkString + put
      }

      private def ghosts: AccumulatorCode =
        accumulator(s"g${rule.head}", s"loop.part(${rule.head}).ghost()", rule.head, writes = true)

      /** The head's key is hashed in the loop; owner by Catalyst's hash. */
      private def computed(
          keyExprs: Array[Expression],
          head: RelationSpec,
          form: RelationShape,
          own: AccumulatorCode,
          combine: (AccumulatorCode, String) => String): String = {
        val (codes, words) = keyExprs.map(word).unzip
        val part = declare(s"part${rule.head}", s"$pkg.RelationPart part${rule.head} = loop.part(${rule.head});\n")
        val scratch = declare(s"hk${rule.head}", s"long[] hk${rule.head} = new long[${math.max(1, form.keyWords)}];\n")
        val mask =
          if (!form.hasNullKeys) ""
          else {
            val bits = words.zipWithIndex.filter(_._1.isNullable).map { case (w, j) =>
              s"(${w.isNull} ? ${1L << j}L : 0L)"
            }
            s"$scratch[${words.length}] = ${if (bits.isEmpty) "0L" else bits.mkString(" | ")};\n"
          }
        val fill = words.zipWithIndex.map { case (w, j) =>
          s"$scratch[$j] = ${if (w.isNullable) s"(${w.isNull} ? 0L : ${w.word})" else w.word};\n"
        }.mkString + mask
        val id = context.freshName("id")
        val local =
          s"""int $id = $part.keys().add($scratch);
             |if ($id >= ${own.capacity}) { $part.grow(); ${Reload} }
             |${combine(own, id)}""".stripMargin
        val put =
          if (tasks == 1 || staysLocal(stratum, rule)) local
          else {
            val hash = head.distributeBy.foldLeft(Words.Seed.toString) { (seed, k) =>
              val chained = hashCode(head.keys(k), words(k).word, seed)
              if (words(k).isNullable) s"(${words(k).isNull} ? $seed : $chained)" else chained
            }
            val owner = context.freshName("owner")
            val found = if (head.distributeBy.isEmpty) "0" else s"$pkg.Words.owner($hash, $tasks)"
            s"""int $owner = $found;
               |if ($owner == loop.me()) { $local } else {
               |  int $id = $part.addGhost($scratch, $owner);
               |  if ($id >= ${ghosts.capacity}) { $part.growGhosts(); ${Reload} }
               |  ${combine(ghosts, id)} }
               |""".stripMargin
          }
        codes.mkString + fill + put
      }

      private def hashCode(column: ColumnSpec, word: String, seed: String): String =
        Words.of(column.dataType) match {
          case LongWord | DoubleWord | _: DecimalWord =>
            s"org.apache.spark.unsafe.hash.Murmur3_x86_32.hashLong($word, $seed)"
          case StringWord => s"$pkg.StringWord.hash($word, $seed, strings)"
          case _ => s"org.apache.spark.unsafe.hash.Murmur3_x86_32.hashInt((int) $word, $seed)"
        }
    }
  }
}

object KernelCode {

  private val Either = 0
  private val Own = 1
  private val Remote = 2

  /** The rule by whose targets the rows of an index are sorted: the only one that is resolved through it. */
  def splittingRule(stratum: StratumSpec, index: Int, tasks: Int): Option[Int] = {
    val rules = stratum.rules.indices.filter { r =>
      val rule = stratum.rules(r)
      rule.target.kind == "resolved" && (rule.steps(rule.target.step) match {
        case p: ProbeSpec => !p.recursive && p.index == index
        case _ => false
      })
    }
    if (tasks > 1 && rules.length == 1) rules.headOption else None
  }

  /** Stands where arrays may have been replaced by larger ones: every local copy is read anew. */
  private val Reload = "/*reload*/"

  /** The probe's keys are the driver's whole key: its groups are ids of the driver's relation. */
  def isAligned(stratum: StratumSpec, rule: RuleSpec, at: Int): Boolean = rule.steps(at) match {
    case p: ProbeSpec if !p.recursive && rule.driver.index < 0 =>
      val index = stratum.staticIndex(p.index)
      val keys = stratum.relations(rule.driver.relation).keys.length
      !index.everywhere && p.keys.length == keys && keys > 0 && p.keys.indices.forall { j =>
        p.keys(j) match {
          case PlainVariable(name) => rule.driver.binds(j) == name
          case _ => false
        }
      }
    case _ => false
  }

  /** What a rule computes in the loop: not the head's key where its row is known already, nor keys of aligned probes. */
  def evaluated(stratum: StratumSpec, rule: RuleSpec): Seq[Expression] = {
    val keys = stratum.relations(rule.head).keys.length
    val emitted = if (rule.target.kind == "computed") rule.emit else rule.emit.drop(keys)
    emitted.toSeq ++ rule.steps.zipWithIndex.flatMap {
      case (FilterSpec(c), _) => Seq(c)
      case (p: ProbeSpec, at) => if (isAligned(stratum, rule, at)) Nil else p.keys.toSeq
    }
  }

  /** Payload columns of a static index that some rule reads. */
  def readPayload(stratum: StratumSpec, index: Int): Array[Boolean] = {
    val read = new Array[Boolean](stratum.staticIndex(index).payload.length)
    for (rule <- stratum.rules;
      names = evaluated(stratum, rule).flatMap(_.collect { case v: RuleVariable => v.name }).toSet;
      p <- rule.steps.collect { case p: ProbeSpec if !p.recursive && p.index == index => p })
      p.binds.indices.foreach(c => read(c) |= names(p.binds(c)))
    read
  }

  /** The head's row belongs to the task that owns the driver's row: its distribution columns are carried. */
  def staysLocal(stratum: StratumSpec, rule: RuleSpec): Boolean = {
    val head = stratum.relations(rule.head)
    val driver = stratum.relations(rule.driver.relation)
    rule.driver.index < 0 && head.distributeBy.length == driver.distributeBy.length &&
    head.distributeBy.zip(driver.distributeBy).forall { case (h, d) =>
      head.keys(h).dataType == driver.keys(d).dataType && (rule.emit(h) match {
        case PlainVariable(name) => rule.driver.binds(d) == name
        case _ => false
      })
    }
  }
}
