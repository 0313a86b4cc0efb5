package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.plan.StratumSpec

/**
 * The states of all tasks of an executor as one, for a loop that one task runs alone. Loading is faster with several
 * tasks, but a loop over few rows is not: every row that crosses tasks is stored, sent and looked up once more.
 *
 * Rows get new ids, by their keys if these are one word in a narrow range: neighbours in memory are then neighbours in
 * many graphs, and a pass in the order of ids propagates values far. Each task copies its part of the indexes.
 */
final class Fold private (loops: Array[LoopState]) {
  private val part = loops.map(_.part(0))
  private val total = part.map(_.keys.size).sum
  private val (low, range) = narrowRange
  private val ranks = new Array[Int](math.max(0, range))

  /** The new id of each row, by task. */
  private val ids = part.map(p => new Array[Int](p.keys.size))
  private val words = new Array[Long](total * part(0).keys.arity)
  private val statics = loops(0).statics.keys.map(i => i -> new FoldedIndex(loops.map(_.staticIndex(i)), total)).toMap
  private val resolved = loops(0).resolved.indices.map { rule =>
    if (loops(0).resolved(rule) == null) null
    else loops(0).resolved(rule).sameKind(loops.map(_.resolved(rule).length).sum)
  }.toArray

  /** Returns the new ids of the rows of `task`, by their former ids. */
  def idsOf(task: Int): Array[Int] = ids(task)

  /** Returns the new ids of the base rows of `task`, by block. */
  def baseIds(task: Int): Array[Array[Int]] = loops(task).baseIds(0).map(_.map(ids(task)))

  private def narrowRange: (Long, Int) =
    if (part(0).keys.arity != 1 || total == 0) (0L, -1)
    else {
      var min = Long.MaxValue
      var max = Long.MinValue
      part.foreach { p =>
        var i = 0
        while (i < p.keys.size) {
          min = math.min(min, p.keys.words(i))
          max = math.max(max, p.keys.words(i))
          i += 1
        }
      }
      val range = max - min + 1
      if (range > 0 && range <= math.max(1024L, total * 8L)) (min, range.toInt) else (0L, -1)
    }

  /** Does the work of one task; collective. Returns the state of all. */
  private def run(stratum: StratumSpec, gang: Gang): LoopState = {
    val me = gang.part
    val keys = part(me).keys
    if (range >= 0) (0 until keys.size).foreach(i => ranks((keys.words(i) - low).toInt) = 1)
    afterAll(gang)(Placement.sumBefore(ranks))
    number(me)
    statics.values.foreach(_.count(me, ids(me)))
    afterAll(gang)(statics.values.foreach(_.place()))
    val targets = stratum.rules.indices.filter(resolved(_) != null)
    val ghosts = Array.tabulate(part(me).ghosts.size) { g =>
      ids(part(me).ghostOwner(g))(part(me).ghostRemote(g))
    }
    statics.foreach { case (id, index) =>
      val rules = targets.filter(stratum.rules(_).resolvingProbe.index == id)
      index.copy(me, ids(me), rules.map(r => new FoldedTargets(loops(me).resolved(r), ids(me), ghosts, resolved(r))))
    }
    gang.once {
      val keys = new FoldedKeys(part(0).keys.arity, words, total)
      val p = new RelationPart(0, part(0).spec, part(0).shape, stratum, keys)
      p.grow()
      val indexes = statics.map { case (id, i) => id -> i.index }
      new LoopState(0, 1, loops(0).strings, Array(p), indexes, Map.empty, resolved, Array(Array.empty))
    }
  }

  /** Does `work` in one task, after all tasks have come here. */
  private def afterAll(gang: Gang)(work: => Unit): Unit = {
    gang.meet()
    gang.once {
      work
      this
    }
  }

  private def number(me: Int): Unit = {
    val keys = part(me).keys
    val shift = part.take(me).map(_.keys.size).sum
    val arity = keys.arity
    val to = ids(me)
    var i = 0
    while (i < to.length) {
      to(i) = if (range >= 0) ranks((keys.words(i) - low).toInt) else shift + i
      System.arraycopy(keys.words, i * arity, words, to(i) * arity, arity)
      i += 1
    }
  }
}

object Fold {

  /**
   * Tests whether the Plan and the data allow to fold, and one task is probably faster: there are at most `mostRows`
   * static rows for two tasks, (2 / n)² of it for n tasks. Collective.
   */
  def fits(stratum: StratumSpec, loop: LoopState, gang: Gang, mostRows: Long): Boolean = {
    val isPlain = gang.isOneExecutor && gang.tasks > 1 && stratum.inPlace && stratum.relations.length == 1 &&
      stratum.relations(0).initial.isEmpty && stratum.relationIndexes.isEmpty && !stratum.makesStrings &&
      stratum.staticIndexes.forall(i => i.alignedTo.isDefined && !i.everywhere) &&
      !stratum.rules.exists(_.target.isComputed) &&
      stratum.rules.forall(_.probes.forall(_.aligned))
    isPlain && isFew(gang.allreduce(Array(loop.statics.values.map(_.rows.toDouble).sum))(0), gang, mostRows)
  }

  /** Tests whether one task is probably faster for so many static rows of all tasks. */
  def isFew(rows: Double, gang: Gang, mostRows: Long): Boolean =
    gang.isOneExecutor && mostRows > 0 && rows * gang.tasks * gang.tasks <= 4.0 * mostRows

  /** Folds the states of all tasks. Collective. */
  def apply(stratum: StratumSpec, loop: LoopState, gang: Gang): (Fold, LoopState) = {
    val all = gang.gather(loop)
    val fold = gang.once(new Fold(all))
    (fold, fold.run(stratum, gang))
  }
}

/** The keys of folded rows. Nothing looks them up: ids are resolved when the loop begins. */
private final class FoldedKeys(n: Int, all: Array[Long], count: Int) extends KeyMap(n) {
  words = all
  size = count
  override def find(key: Array[Long]): Int = throw new UnsupportedOperationException
  override def add(key: Array[Long], from: Int): Int = throw new UnsupportedOperationException
}

/** The targets of a rule by row of its index: ids of `task`, complements of its ghosts, and the ids of the fold. */
private final class FoldedTargets(task: Column, ids: Array[Int], ghosts: Array[Int], to: Column) {
  def copy(from: Int, at: Int, n: Int): Unit = {
    var i = 0
    while (i < n) {
      val target = task.int(from + i)
      to.set(at + i, if (target >= 0) ids(target) else ghosts(~target))
      i += 1
    }
  }
}

/** The indexes of all tasks as one, whose groups are the new ids. */
private final class FoldedIndex(parts: Array[StaticIndex], groups: Int) {
  private val offsets = new Array[Int](groups + 1)
  private val rows = parts.map(_.rows).sum
  private val payload = parts(0).payload.map(c => if (c == null) null else c.sameKind(rows))
  private val nulls = payload.indices.map { c =>
    if (parts.forall(_.nulls(c) == null)) null else new Array[Boolean](rows)
  }.toArray

  def index: StaticIndex = new StaticIndex(null, offsets, null, payload, nulls)

  /** Writes the number of rows of each group of a task. */
  def count(task: Int, ids: Array[Int]): Unit = {
    val from = parts(task).offsets
    var g = 0
    while (g < parts(task).groups) {
      offsets(ids(g)) = from(g + 1) - from(g)
      g += 1
    }
  }

  def place(): Unit = Placement.sumBefore(offsets)

  /** Copies the rows of a task. */
  def copy(task: Int, ids: Array[Int], targets: Seq[FoldedTargets]): Unit = {
    val part = parts(task)
    val columns = payload.indices.filter(payload(_) != null).toArray
    val toCopy = targets.toArray
    var g = 0
    while (g < part.groups) {
      val from = part.offsets(g)
      val n = part.offsets(g + 1) - from
      if (n > 0) {
        val at = offsets(ids(g))
        columns.foreach { c =>
          part.payload(c).copy(from, payload(c), at, n)
          if (part.nulls(c) != null) System.arraycopy(part.nulls(c), from, nulls(c), at, n)
        }
        toCopy.foreach(_.copy(from, at, n))
      }
      g += 1
    }
  }
}
