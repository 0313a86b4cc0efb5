package org.apache.spark.sql.paralagg.state

/**
 * The edges of a rule that adds by target (the Plan's `adds_by_target`; twin of `TargetSums` in `mpi_backend/state/index.py`).
 *
 * If every source contributes (PageRank's rounds), the contribution of a source is computed once, and each target adds
 * up those of its sources: a sum is written once, not once for each edge.
 *
 * @param index the rows of the rule's last probe; a group is the id of a source
 * @param targets ids of the rows' targets, complements for ghosts
 */
final class TargetSums(index: StaticIndex, targets: Column, head: RelationPart) {
  import TargetSums._

  /** The contribution of each source, by column and id. */
  val given: Array[Array[Double]] = head.spec.dependents.map(_ => new Array[Double](index.groups))

  /** The number of sources that contribute in this round; generated code counts them. */
  var contributed: Int = 0

  /** The number of edges. */
  val edges: Int = targets.length

  private val own = TargetSums.edges(index, targets, ghosts = 0, head.keys.size)
  private val remote = TargetSums.edges(index, targets, ghosts = -1, head.ghosts.size)

  /** Adds the contributions of all sources to rows of this task, and to ghosts. */
  def add(): Unit = {
    own.addTo(head.pending, given)
    remote.addTo(head.ghost, given)
  }
}

object TargetSums {

  /** Groups edges by target. `ghosts` is xored with a target: 0 selects ids of this task, -1 complements. */
  private def edges(index: StaticIndex, targets: Column, ghosts: Int, count: Int): Edges = {
    val offsets = index.offsets
    val ends = new Array[Int](count)
    var n = 0
    var e = 0
    while (e < targets.length) {
      val target = targets.int(e) ^ ghosts
      if (target >= 0) {
        ends(target) += 1
        n += 1
      }
      e += 1
    }
    Placement.sumBefore(ends)
    val sources = targets.sameKind(n)
    var g = 0
    e = 0
    while (g < index.groups) {
      while (e < offsets(g + 1)) {
        val target = targets.int(e) ^ ghosts
        if (target >= 0) {
          sources.set(ends(target), g)
          ends(target) += 1
        }
        e += 1
      }
      g += 1
    }
    new Edges(ends, sources)
  }

  /** Edges by target: the sources of a target end at `ends` and begin where those of the target before end. */
  private final class Edges(ends: Array[Int], sources: Column) {

    def addTo(into: Accumulator, given: Array[Array[Double]]): Unit = {
      var from = 0
      var target = 0
      while (target < ends.length) {
        val end = ends(target)
        if (from < end) {
          var j = 0
          while (j < given.length) {
            val column = into.columns(j)
            val sum = java.lang.Double.longBitsToDouble(column(target)) + sumOf(given(j), from, end)
            column(target) = java.lang.Double.doubleToRawLongBits(sum)
            j += 1
          }
          into.enqueue(target)
        }
        from = end
        target += 1
      }
    }

    private def sumOf(values: Array[Double], from: Int, end: Int): Double = {
      var sum = 0.0
      var e = from
      while (e < end) {
        sum += values(sources.int(e))
        e += 1
      }
      sum
    }
  }
}
