package org.apache.spark.sql.paralagg.loop

import java.util.Arrays

import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}

/**
 * The values of an `h_index` column by row of its view: the greatest h that at least h of `total` witnesses hold
 * (`HIndex` in program/aggregators.py; twin of mpi_backend/kernels/h_index.py).
 *
 * A row knows how many witnesses have each value below its h. If a value falls, that is one witness more below h; while
 * fewer than h are left, h falls by one, and the witnesses of that value count again. So a change of a witness takes
 * constant time, but for the falls of h, of which a row has at most its first total.
 */
private[loop] final class HIndexes {
  import HIndexes._

  /** The last value of each witness, by row of the witness relation. */
  private var taken = Array.emptyLongArray
  private var totals = Array.emptyLongArray
  private var levels = Array.emptyLongArray

  /** The number of witnesses below the level, and of each value below it (null: there was none yet). */
  private var lost = Array.emptyIntArray
  private var below = Array.empty[Array[Int]]
  private var ofValues = 0L

  def bytes: Long = taken.length * 8L + totals.length * 24L + ofValues

  /** Forgets all witnesses. */
  def clear(): Unit = {
    taken = Array.emptyLongArray
    totals = Array.emptyLongArray
    levels = Array.emptyLongArray
    lost = Array.emptyIntArray
    below = Array.empty
    ofValues = 0
  }

  /** Makes room for rows below `size`, and for witnesses below `witnesses`. */
  def ensure(size: Int, witnesses: Int): Unit = {
    if (size > totals.length) {
      totals = lengthened(totals, size)
      levels = Arrays.copyOf(levels, size)
      lost = Arrays.copyOf(lost, size)
      below = Arrays.copyOf(below, size)
    }
    if (witnesses > taken.length) taken = lengthened(taken, witnesses)
  }

  /**
   * Takes row `witness` of the witness relation and returns the h-index of row `id`.
   *
   * @param value at most the one before; [[HIndexes.Any]] if the row has none
   */
  def take(id: Int, total: Long, witness: Int, value: Long): Long = {
    val before = taken(witness)
    if (totals(id) == Any) levels(id) = total
    if (total < totals(id)) totals(id) = total
    if (value < before && value < levels(id)) {
      if (below(id) == null) below(id) = values(levels(id))
      below(id)(value.toInt) += 1
      if (before < levels(id)) below(id)(before.toInt) -= 1
      else lost(id) += 1
    }
    if (value < before) taken(witness) = value
    var level = levels(id)
    while (level > 0 && totals(id) - lost(id) < level) {
      level -= 1
      if (below(id) != null) lost(id) -= below(id)(level.toInt)
    }
    levels(id) = level
    level
  }

  private def values(level: Long): Array[Int] = {
    if (level > MostValues) throw new ParalaggException(
      ErrorCodes.Overflow, f"h_index takes totals up to $MostValues%,d, but a key has $level%,d.",
      "the total is the number of witnesses of a key; count them.")
    ofValues += 4 * level
    new Array[Int](level.toInt)
  }
}

private[loop] object HIndexes {

  /** The value of a witness that holds any h, and the total of a row that has none yet. */
  final val Any = Long.MaxValue
  private final val MostValues = Int.MaxValue - 8

  private def lengthened(a: Array[Long], size: Int): Array[Long] = {
    val longer = Arrays.copyOf(a, size)
    Arrays.fill(longer, a.length, size, Any)
    longer
  }
}
