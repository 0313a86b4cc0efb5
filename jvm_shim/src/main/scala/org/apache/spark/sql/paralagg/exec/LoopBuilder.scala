package org.apache.spark.sql.paralagg.exec

import org.apache.spark.sql.paralagg.plan._
import org.apache.spark.unsafe.types.UTF8String

/**
 * From loaded blocks to what the loop works on: relation parts with dense ids, static indexes, resolved targets.
 *
 * Ids come first: base rows, keys that static sides join on, keys that rules derive. Then ghosts ask their owners for their
 * ids there, so that from here on a message is (id, value) and the loop hashes nothing.
 */
final class LoopBuilder(
    stratum: StratumSpec,
    routes: Routes,
    shape: Shape,
    gang: Gang,
    strings: Array[UTF8String],
    blocks: Int => Array[Block]) {

  private val parts = stratum.relations.indices.map { r =>
    new RelationPart(r, stratum.relations(r), shape.relations(r), stratum)
  }.toArray

  /** For relations of one-word keys in a narrow range: what `resolve` has found already. */
  private val nearTargets = new Array[NearTargets](parts.length)

  def build(): LoopState = {
    val aligned = alignedIndexes
    val resolving = stratum.rules.indices.filter(stratum.rules(_).target.kind == "resolved")
    expectRanges(aligned, resolving)
    parts.foreach(p => baseIds(p))
    val ids = aligned.map { case (index, relation) =>
      index -> StaticIndex.intern(blocks(routes.static(index)), keyColumns(index), parts(relation).keys)
    }
    // Targets by row of the blocks; ghosts among them get their ids at the owner next.
    val targets = resolving.map(rule => rule -> resolve(stratum.rules(rule))).toMap
    exchangeGhosts()
    parts.foreach { p =>
      p.grow()
      p.growGhosts()
    }
    val placed = stratum.staticIndexes.map(i => i.id -> place(i, aligned, ids, targets)).toMap
    val statics = placed.map { case (id, (index, _)) => id -> index }
    val resolved = stratum.rules.indices.map { rule =>
      targets.get(rule).map(t => order(t, placed(probe(stratum.rules(rule)).index)._2)).orNull
    }.toArray
    val indexes = stratum.relationIndexes.map { i =>
      val own = parts(i.relation)
      val part = if (i.copy) new RelationPart(i.relation, own.spec, own.shape, stratum) else own
      part.grow()
      i.id -> new RelationIndex(i, part)
    }.toMap
    // The indexes hold what the rules need: the rows as they were loaded can go. Base rows are still read.
    stratum.staticIndexes.filterNot(_.everywhere).foreach(i => blocks(routes.static(i.id)).foreach(_.free()))
    new LoopState(gang.part, gang.tasks, strings, parts, statics, indexes, resolved)
  }

  /** Static indexes whose groups are ids of a relation: every rule that probes one drives from that relation, by its whole key. */
  private def alignedIndexes: Map[Int, Int] = {
    val uses = for (rule <- stratum.rules.toSeq; (p: ProbeSpec, at) <- rule.steps.zipWithIndex.toSeq if !p.recursive)
      yield (p.index, rule.driver.relation, KernelCode.isAligned(stratum, rule, at))
    uses.collect { case (index, relation, true) => index -> relation }.toMap
  }

  private def wanted(index: Int): Array[Boolean] = KernelCode.readPayload(stratum, index)

  private def keyColumns(index: Int): Int = stratum.staticIndex(index).keys.length

  private def expectRanges(aligned: Map[Int, Int], resolving: Seq[Int]): Unit = parts.foreach { p =>
    if (p.shape.keyWords == 1) {
      val base = blocks(routes.base(p.index)).toSeq
      val joined = aligned.filter(_._2 == p.index).keys.toSeq.flatMap(i => blocks(routes.static(i)).toSeq)
      val derived = resolving.map(stratum.rules(_)).filter(r => stratum.relations(r.head) eq p.spec).flatMap { r =>
        val column = payloadColumn(r, 0)
        blocks(routes.static(probe(r).index)).toSeq.map(b => (b.words(column).array, b.rows))
      }
      StaticIndex.expect(p.keys, (base ++ joined).map(b => (b.words(0).array, b.rows)) ++ derived)
      StaticIndex.expect(p.ghosts, derived)
      if (p.spec.keys.length == 1)
        nearTargets(p.index) = p.keys.asInstanceOf[LongKeyMap].range.map { case (low, size) =>
          new NearTargets(low, new Array[Int](size))
        }.orNull
    }
  }

  private def probe(rule: RuleSpec): ProbeSpec = rule.steps(rule.target.step).asInstanceOf[ProbeSpec]

  /** Where key `k` of the head stands in the blocks of the index that resolves it. */
  private def payloadColumn(rule: RuleSpec, k: Int): Int = keyColumns(probe(rule).index) + rule.target.payload(k)

  /** Ids of the rows of a base or initial block, for all its rows in order. */
  private def baseIds(p: RelationPart): Unit = blocks(routes.base(p.index)).foreach(b => BaseRows.ids(p, b))

  /** The index, and where its rows went. */
  private def place(
      i: StaticIndexSpec, aligned: Map[Int, Int], ids: Map[Int, Array[Int]], targets: Map[Int, Array[Int]])
      : (StaticIndex, Placement) = {
    val rows = blocks(routes.static(i.id))
    val n = keyColumns(i.id)
    def make(keys: KeyMap, groups: Array[Int]): (StaticIndex, Placement) = {
      val split = KernelCode.splittingRule(stratum, i.id, gang.tasks).flatMap(targets.get).orNull
      val placement = StaticIndex.place(groups, keys.size, split)
      (StaticIndex.build(rows, n, keys, placement, wanted(i.id)), placement)
    }
    def own: (StaticIndex, Placement) = {
      val keys = KeyMap(n)
      if (n == 1) StaticIndex.expect(keys, rows.toSeq.map(b => (b.words(0).array, b.rows)))
      make(keys, StaticIndex.intern(rows, n, keys))
    }
    aligned.get(i.id) match {
      case Some(r) => make(parts(r).keys, ids(i.id))
      case None if i.everywhere => gang.once(own)
      case None => own
    }
  }

  /** For each row of the index' blocks the id of the head's key: own ids as they are, ghosts as their complement. */
  private def resolve(rule: RuleSpec): Array[Int] = {
    val p = parts(rule.head)
    val rows = blocks(routes.static(probe(rule).index))
    val out = new Array[Int](rows.map(_.rows).sum)
    val columns = rule.target.payload.indices.map(payloadColumn(rule, _)).toArray
    val owner = new Owner(p.spec, p.spec.distributeBy, p.shape.hasNullKeys, gang.tasks, strings)
    val key = new Array[Long](p.shape.keyWords)
    var at = 0
    rows.foreach { b =>
      val near = nearTargets(p.index)
      if (near != null) {
        near.resolve(b.words(columns(0)).array, b.rows, out, at)(word => {
          key(0) = word
          lookup(p, key, owner)
        })
        at += b.rows
      } else {
        var i = 0
        while (i < b.rows) {
          BaseRows.fillKey(key, b, columns, i, p.shape.hasNullKeys)
          out(at) = lookup(p, key, owner)
          at += 1
          i += 1
        }
      }
    }
    out
  }

  private def lookup(p: RelationPart, key: Array[Long], owner: Owner): Int = {
    val own = p.keys.find(key)
    if (own >= 0) own
    else {
      val known = p.ghosts.find(key)
      if (known >= 0) ~known
      else {
        val o = owner.of(key)
        if (o == gang.part) p.keys.add(key) else ~p.addGhost(key, o)
      }
    }
  }

  /** A rule's targets from the order of the blocks to the order of the index. */
  private def order(targets: Array[Int], placement: Placement): Array[Int] = {
    val out = new Array[Int](targets.length)
    var i = 0
    while (i < targets.length) {
      out(placement.rows(i)) = targets(i)
      i += 1
    }
    out
  }

  /** Tells the owner of each ghost its key, and learns its id there. Two exchanges for all relations. */
  private def exchangeGhosts(): Unit = if (gang.tasks > 1) {
    val asked = Array.fill(gang.tasks)(new LongBuffer)
    val mine = Array.fill(gang.tasks)(Array.fill(parts.length)(new LongBuffer))
    parts.foreach { p =>
      (0 until p.ghosts.size).foreach(g => mine(p.ghostOwner(g))(p.index).add(g))
      (0 until gang.tasks).foreach { t =>
        val ghosts = mine(t)(p.index)
        asked(t).add(ghosts.size)
        (0 until ghosts.size).foreach { i =>
          (0 until p.shape.keyWords).foreach(c => asked(t).add(p.ghosts.word(ghosts.array(i).toInt, c)))
        }
      }
    }
    val (questions, _) = gang.exchange(asked.map(_.trimmed), WordsCodec, Array.emptyDoubleArray)
    val answers = questions.map { words =>
      val out = new LongBuffer
      var at = 0
      parts.foreach { p =>
        val key = new Array[Long](p.shape.keyWords)
        val n = words(at).toInt
        at += 1
        (0 until n).foreach { _ =>
          System.arraycopy(words, at, key, 0, key.length)
          at += key.length
          out.add(p.keys.add(key))
        }
      }
      out.trimmed
    }
    val (ids, _) = gang.exchange(answers, WordsCodec, Array.emptyDoubleArray)
    (0 until gang.tasks).foreach { t =>
      var at = 0
      parts.foreach { p =>
        val ghosts = mine(t)(p.index)
        (0 until ghosts.size).foreach { i =>
          p.ghostRemote(ghosts.array(i).toInt) = ids(t)(at).toInt
          at += 1
        }
      }
    }
  }
}

/**
 * Ids of keys that lie near each other, by their distance from the least: one random access where two maps would take two.
 * 0 is unknown, `id + 1` a key of this task, the complement of its id a ghost.
 */
private final class NearTargets(low: Long, found: Array[Int]) {

  /** The targets of `n` words, from `at` on in `out`; `lookup` is asked once for each word. */
  def resolve(words: Array[Long], n: Int, out: Array[Int], at: Int)(lookup: Long => Int): Unit = {
    var i = 0
    while (i < n) {
      val near = (words(i) - low).toInt
      val known = found(near)
      out(at + i) =
        if (known > 0) known - 1
        else if (known < 0) known
        else {
          val target = lookup(words(i))
          found(near) = if (target >= 0) target + 1 else target
          target
        }
      i += 1
    }
  }
}

/** The owner of a key of a relation, by Catalyst's hash of its distribution columns; nulls do not change the hash. */
final class Owner(spec: RelationSpec, columns: Array[Int], masked: Boolean, tasks: Int, strings: Array[UTF8String]) {
  private val types = columns.map(c => Words.of(spec.keys(c).dataType))

  /** `words` holds the key from `at` on, then the null mask if keys have one. */
  def of(words: Array[Long], at: Int = 0): Int =
    if (columns.isEmpty) 0
    else {
      val mask = if (masked) words(at + spec.keys.length) else 0L
      var hash = Words.Seed
      var i = 0
      while (i < columns.length) {
        if ((mask >> columns(i) & 1) == 0) hash = types(i).hash(words(at + columns(i)), hash, strings)
        i += 1
      }
      Words.owner(hash, tasks)
    }
}

/** Base and initial rows: keys to ids, values to flat rows for a combiner. */
object BaseRows {

  def fillKey(key: Array[Long], b: Block, columns: Array[Int], row: Int, masked: Boolean): Unit = {
    var mask = 0L
    var c = 0
    while (c < columns.length) {
      if (b.isNull(columns(c), row)) {
        key(c) = 0
        mask |= 1L << c
      } else key(c) = b.words(columns(c)).array(row)
      c += 1
    }
    if (masked) key(columns.length) = mask
  }

  def ids(p: RelationPart, b: Block): Array[Int] = {
    val key = new Array[Long](p.shape.keyWords)
    val columns = p.spec.keys.indices.toArray
    Array.tabulate(b.rows) { i =>
      fillKey(key, b, columns, i, p.shape.hasNullKeys)
      p.keys.add(key)
    }
  }

  /** Values of all rows, flat, in the form that combiners read; a base row has no parent. */
  def values(p: RelationPart, b: Block): (Array[Long], Int) = {
    val k = p.spec.keys.length
    val n = p.spec.dependents.length
    val masked = p.shape.dependents.contains(true)
    val stride = p.valueWords
    val out = new Array[Long](b.rows * stride)
    var i = 0
    while (i < b.rows) {
      var mask = 0L
      var j = 0
      while (j < n) {
        if (b.isNull(k + j, i)) mask |= 1L << j
        else out(i * stride + j) = b.words(k + j).array(i)
        j += 1
      }
      if (masked) out(i * stride + n) = mask
      if (p.isTraced) out(i * stride + stride - 1) = -1L
      i += 1
    }
    (out, stride)
  }
}
