package org.apache.spark.sql.paralagg.loop

import java.util.{Arrays, BitSet}

import org.apache.spark.sql.paralagg.gang.{Gang, WordsCodec}
import org.apache.spark.sql.paralagg.load.LongBuffer
import org.apache.spark.sql.paralagg.state.{RelationPart, RowAddress}

/**
 * The rows of a relation by the rows that they were derived from: the children of a row are the rows of any task that
 * have it as parent. This task has lists of its own rows, by their parents' tasks and ids.
 */
private[loop] final class ParentTree(part: RelationPart, gang: Gang) {
  private val parents = part.state.parents
  private val rows = math.min(part.keys.size, part.state.capacity)

  /** The next row with the same parent, -1 after the last one. */
  private val next = new Array[Int](rows)

  /** By task of the parent: the first child of each id, -1 if there is none. */
  private val first: Array[Array[Int]] = {
    val lists = Array.fill(gang.tasks)(Array.emptyIntArray)
    (0 until rows).foreach { id =>
      if (part.isPresent(id) && parents(id) >= 0) {
        val (task, parent) = (RowAddress.task(parents(id)), RowAddress.id(parents(id)))
        val list = lists(task)
        if (parent >= list.length) {
          lists(task) = Arrays.copyOf(list, math.max(parent + 1, 2 * list.length))
          Arrays.fill(lists(task), list.length, lists(task).length, -1)
        }
        next(id) = lists(task)(parent)
        lists(task)(parent) = id
      }
    }
    lists
  }

  /**
   * Adds the descendants of `fallen` rows to them. Returns the number of all, in all tasks, or more than `most` if there
   * are more. Collective.
   */
  def fall(fallen: BitSet, most: Long): Long = {
    var news = fallen.stream().toArray
    var count = gang.allreduce(Array(news.length.toDouble))(0).toLong
    var isActive = count > 0 && count <= most
    while (isActive) {
      val (mine, local) = (new LongBuffer, new LongBuffer)
      news.foreach { id =>
        mine.add(id)
        local.add(id)
      }
      // The descendants along rows of this task, which others hear of at once.
      while (local.size > 0) {
        local.size -= 1
        children(gang.part, local.array(local.size).toInt, fallen) { child =>
          mine.add(child)
          local.add(child)
        }
      }
      val (heard, _) = gang.exchange(
        Array.tabulate(gang.tasks)(t => if (t == gang.part || mine.size == 0) null else mine.trimmed),
        WordsCodec, Array.emptyDoubleArray)
      val found = new LongBuffer
      heard.indices.filter(t => t != gang.part && heard(t) != null).foreach { t =>
        heard(t).foreach(id => children(t, id.toInt, fallen)(found.add(_)))
      }
      news = found.trimmed.map(_.toInt)
      val sums = gang.allreduce(Array(fallen.cardinality.toDouble, news.length.toDouble))
      count = sums(0).toLong
      isActive = sums(1) > 0 && count <= most
      gang.check()
    }
    count
  }

  /** Adds the children of a row that have not fallen, and passes them on. */
  private def children(task: Int, id: Int, fallen: BitSet)(found: Int => Unit): Unit = {
    var child = if (id < first(task).length) first(task)(id) else -1
    while (child >= 0) {
      if (!fallen.get(child)) {
        fallen.set(child)
        found(child)
      }
      child = next(child)
    }
  }
}
