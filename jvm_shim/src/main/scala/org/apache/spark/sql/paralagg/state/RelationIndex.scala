package org.apache.spark.sql.paralagg.state

import java.util.Arrays

import org.apache.spark.sql.paralagg.plan.RelationIndexSpec

/**
 * An index of a recursive relation by some of its keys, for rules that probe it. The rows of a group are a linked list.
 *
 * It is over the relation's own part, or over a copy on the tasks that probe it. Rows with a null in a key of the index
 * never join and are left out.
 */
final class RelationIndex(val spec: RelationIndexSpec, val part: RelationPart) {
  val groups: KeyMap = KeyMap(spec.keys.length)
  var head: Array[Int] = Array.fill(16)(-1)
  var next: Array[Int] = Array.fill(16)(RelationIndex.Unlinked)
  private val scratch = new Array[Long](spec.keys.length)

  /** Links the rows of the part's current delta that are new. */
  def linkCurrent(): Unit = {
    var i = 0
    while (i < part.currentSize) {
      link(part.current(i))
      i += 1
    }
  }

  /** Unlinks all rows. */
  def clear(): Unit = {
    Arrays.fill(head, -1)
    Arrays.fill(next, RelationIndex.Unlinked)
  }

  private def link(id: Int): Unit = {
    if (id >= next.length) {
      val from = next.length
      next = Arrays.copyOf(next, math.max(id + 1, from * 2))
      Arrays.fill(next, from, next.length, RelationIndex.Unlinked)
    }
    if (next(id) == RelationIndex.Unlinked && !hasNullKey(id)) {
      var c = 0
      while (c < scratch.length) {
        scratch(c) = part.keys.word(id, spec.keys(c))
        c += 1
      }
      val group = groups.add(scratch)
      if (group >= head.length) {
        val from = head.length
        head = Arrays.copyOf(head, math.max(group + 1, from * 2))
        Arrays.fill(head, from, head.length, -1)
      }
      next(id) = head(group)
      head(group) = id
    }
  }

  private def hasNullKey(id: Int): Boolean = part.shape.hasNullKeys && {
    val mask = part.keys.word(id, part.spec.keys.length)
    spec.keys.exists(c => (mask >> c & 1) != 0)
  }
}

object RelationIndex {
  val Unlinked: Int = -2
}
