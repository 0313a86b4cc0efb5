package org.apache.spark.sql.paralagg.state

import java.util.Arrays

/**
 * The values of dependent columns by dense id, with the list of ids that changed ("dirty").
 *
 * A column that may hold null in this run has a byte an id in `valid`; else that entry is null. `identity` is the word
 * of an id without any value. Flags: [[Accumulator.Queued]] is in `dirty`, [[Accumulator.Present]] has a row,
 * [[Accumulator.InDelta]] belongs to the delta that is being applied, [[Accumulator.Counted]] is included in the number
 * of rows, [[Accumulator.Settled]] is unchanged since before the run (settled relations).
 */
final class Accumulator(val identity: Array[Long], nullable: Array[Boolean], isTraced: Boolean = false) {
  val columns: Array[Array[Long]] = identity.map(_ => Array.emptyLongArray)
  val valid: Array[Array[Byte]] = nullable.map(n => if (n) Array.emptyByteArray else null)
  /** In a traced run (`CycleTrace`) the address of the row that each value was derived from, -1 for the base. */
  var parents: Array[Long] = if (isTraced) Array.emptyLongArray else null
  var flags: Array[Byte] = Array.emptyByteArray
  var dirty: Array[Int] = Array.emptyIntArray
  var dirtySize: Int = 0

  def capacity: Int = flags.length

  /** Makes room for ids below `size`. */
  def ensure(size: Int): Unit = if (size > flags.length) {
    val capacity = math.max(size, math.min(flags.length.toLong * 2, Int.MaxValue - 8).toInt)
    val before = flags.length
    flags = Arrays.copyOf(flags, capacity)
    dirty = Arrays.copyOf(dirty, capacity)
    if (isTraced) {
      parents = Arrays.copyOf(parents, capacity)
      Arrays.fill(parents, before, capacity, -1L)
    }
    columns.indices.foreach { j =>
      columns(j) = Arrays.copyOf(columns(j), capacity)
      if (identity(j) != 0) Arrays.fill(columns(j), before, capacity, identity(j))
      if (valid(j) != null) valid(j) = Arrays.copyOf(valid(j), capacity)
    }
  }

  /** Returns the dirty list and replaces it by `spare`, or by a new list if that is too short. */
  def takeDirty(spare: Array[Int]): Array[Int] = {
    val taken = dirty
    dirty = if (spare.length >= flags.length) spare else new Array[Int](flags.length)
    dirtySize = 0
    taken
  }

  /** Writes the queued rows to `ids`, in their order; returns their number. */
  def listQueued(ids: Array[Int]): Int = {
    var n = 0
    var id = 0
    while (id < flags.length) {
      if ((flags(id) & Accumulator.Queued) != 0) {
        ids(n) = id
        n += 1
      }
      id += 1
    }
    n
  }

  /** Sorts a list of `n` queued rows by a scan of all flags, if it is long: then memory is read in order. */
  def sortQueued(ids: Array[Int], n: Int): Int =
    if (n.toLong * Accumulator.ScanFactor > capacity) listQueued(ids) else n

  /** Marks row `id` present and dirty. */
  def enqueue(id: Int): Unit = {
    if ((flags(id) & Accumulator.Queued) == 0) {
      dirty(dirtySize) = id
      dirtySize += 1
    }
    flags(id) = (flags(id) | Accumulator.Listed).toByte
  }

  /** Resets every dirty id to the identity. */
  def clearDirty(): Unit = {
    var i = 0
    while (i < dirtySize) {
      clear(dirty(i))
      i += 1
    }
    dirtySize = 0
  }

  /** Resets an id that is not dirty to the identity. */
  def clear(id: Int): Unit = {
    flags(id) = 0
    var j = 0
    while (j < columns.length) {
      columns(j)(id) = identity(j)
      if (valid(j) != null) valid(j)(id) = 0
      j += 1
    }
  }

  /** Clears, then sets flags of the first `n` of `ids`. */
  def setFlags(ids: Array[Int], n: Int, clear: Int = 0, set: Int = 0): Unit = {
    var i = 0
    while (i < n) {
      flags(ids(i)) = (flags(ids(i)) & ~clear | set).toByte
      i += 1
    }
  }

  /** Returns the bytes for each id, for the memory account. */
  def bytesPerId: Long = columns.length * 8L + valid.count(_ != null) + (if (isTraced) 8 else 0) + 5
}

object Accumulator {
  final val Queued = 1
  final val Present = 2
  final val InDelta = 4
  final val Counted = 8
  final val Settled = 16

  /** A list with more than 1/ScanFactor of all rows is long. */
  private val ScanFactor = 64

  /** The flags of a row on the dirty list. */
  final val Listed = Queued | Present
}
