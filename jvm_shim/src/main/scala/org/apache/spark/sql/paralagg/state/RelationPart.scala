package org.apache.spark.sql.paralagg.state

import java.util.Arrays

import org.apache.spark.sql.paralagg.load.{Block, LongBuffer}
import org.apache.spark.sql.paralagg.plan.{RelationSpec, StratumSpec}
import org.apache.spark.sql.types.StringType

/**
 * One task's part of a recursive relation: keys as dense ids, values by id, and *ghosts*. A ghost is a key that another
 * task owns, with the best value sent to it, so that no value is sent that cannot improve it.
 *
 * `state` holds the rows. Rules write to `pending`, which is `state` itself if the Plan allows reading values in the
 * iteration that wrote them. A driver of version delta reads `delta`: new values under a lattice, differences under
 * sums.
 */
final class RelationPart(
    val index: Int, val spec: RelationSpec, val shape: RelationShape, stratum: StratumSpec, val keys: KeyMap) {

  def this(index: Int, spec: RelationSpec, shape: RelationShape, stratum: StratumSpec) =
    this(index, spec, shape, stratum, KeyMap(shape.keyWords))

  var ghosts: KeyMap = KeyMap(shape.keyWords)
  private val identity = spec.dependents.map(Identity.of)

  /** Each change records the row that it was derived from (`CycleTrace`). */
  var isTraced = false
  private def accumulator() = new Accumulator(identity, shape.dependents, isTraced)

  var state: Accumulator = accumulator()
  var pending: Accumulator = if (stratum.inPlace) state else accumulator()
  var delta: Accumulator = if (stratum.isAccumulating) accumulator() else null
  var ghost: Accumulator = accumulator()

  /** Returns the values that a driver reads: differences under sums, else the values of the rows. */
  def driverValues: Accumulator = if (stratum.isAccumulating) delta else state

  /** The owner of each ghost, and the ghost's id there (-1 if not exchanged). */
  var ghostOwner: Array[Int] = Array.emptyIntArray
  var ghostRemote: Array[Int] = Array.emptyIntArray

  /** Ids of the delta that the next application of the rules reads. */
  var current: Array[Int] = Array.emptyIntArray
  var currentSize: Int = 0

  /** The number of rows; an id without a row is a key that only joins use. */
  var rows: Long = 0

  /** The number of rows that were counted when the iteration began. */
  var rowsBefore: Long = 0

  /** Returns the words of a row's values: the columns, the null mask if there is one, the parent in a traced run. */
  def valueWords: Int =
    spec.dependents.length + (if (shape.dependents.contains(true)) 1 else 0) + (if (isTraced) 1 else 0)

  /** Return the positions of strings in a row's key, and in its values. */
  def stringKeys: Array[Int] = spec.keys.indices.filter(spec.keys(_).dataType.isInstanceOf[StringType]).toArray
  def stringValues: Array[Int] =
    spec.dependents.indices.filter(spec.dependents(_).column.dataType.isInstanceOf[StringType]).toArray

  /** Appends the values of row `id` of `a` as combiners read them. */
  def appendValues(out: LongBuffer, a: Accumulator, id: Int): Unit = {
    var mask = 0L
    var j = 0
    while (j < a.columns.length) {
      out.add(a.columns(j)(id))
      if (a.valid(j) != null && a.valid(j)(id) == 0) mask |= 1L << j
      j += 1
    }
    if (shape.dependents.contains(true)) out.add(mask)
    if (isTraced) out.add(a.parents(id))
  }

  /** Returns the ids of the keys of base rows; adds new keys. */
  def ids(b: Block): Array[Int] = {
    val ids = new Array[Int](b.rows)
    BlockKeys.intern(Array(b), spec.keys.length, keys, shape.hasNullKeys, Column(ids))
    ids
  }

  /** Returns the values of base rows as combiners read them, `valueWords` a row; a base row has no parent. */
  def values(b: Block): Array[Long] = {
    val k = spec.keys.length
    val n = spec.dependents.length
    val hasMask = shape.dependents.contains(true)
    val stride = valueWords
    val out = new Array[Long](b.rows * stride)
    val in = Array.tabulate(n)(j => b.column(k + j))
    var i = 0
    while (i < b.rows) {
      var mask = 0L
      var j = 0
      while (j < n) {
        if (b.isNull(k + j, i)) mask |= 1L << j
        else out(i * stride + j) = in(j)(i)
        j += 1
      }
      if (hasMask) out(i * stride + n) = mask
      if (isTraced) out(i * stride + stride - 1) = -1L
      i += 1
    }
    out
  }

  /** Makes room for all keys. */
  def grow(): Unit = {
    val size = math.max(keys.size, 16)
    state.ensure(size)
    if (pending ne state) pending.ensure(size)
    if (delta != null) delta.ensure(size)
  }

  def growGhosts(): Unit = {
    ghost.ensure(math.max(ghosts.size, 16))
    if (ghostOwner.length < ghost.capacity) {
      val from = ghostOwner.length
      ghostOwner = Arrays.copyOf(ghostOwner, ghost.capacity)
      ghostRemote = Arrays.copyOf(ghostRemote, ghost.capacity)
      Arrays.fill(ghostRemote, from, ghost.capacity, -1)
    }
  }

  /** Removes all ghosts, none of which waits to be sent. New ones get their ids. */
  def forgetGhosts(): Unit = {
    ghosts = KeyMap(shape.keyWords)
    ghost = accumulator()
    ghostOwner = Array.emptyIntArray
    ghostRemote = Array.emptyIntArray
  }

  /** Returns the id of a ghost, which is added if it is new. */
  def addGhost(key: Array[Long], owner: Int): Int = {
    val id = ghosts.add(key)
    if (id >= ghostOwner.length || id >= ghost.capacity) growGhosts()
    ghostOwner(id) = owner
    id
  }

  /** Writes the ids of `n` keys in `rows` to `ids`, see [[KeyMap.addAll]]; there is room for all of them then. */
  def addKeys(rows: Array[Long], from: Int, stride: Int, n: Int, ids: Array[Int]): Unit = {
    keys.addAll(rows, from, stride, n, ids)
    if (keys.size > pending.capacity) grow()
  }

  /** As `addKeys`, for ghosts. The last word of a row is its owner. */
  def addGhosts(rows: Array[Long], stride: Int, n: Int, ids: Array[Int]): Unit = {
    ghosts.addAll(rows, 0, stride, n, ids)
    if (ghosts.size > math.min(ghostOwner.length, ghost.capacity)) growGhosts()
    var i = 0
    while (i < n) {
      ghostOwner(ids(i)) = rows((i + 1) * stride - 1).toInt
      i += 1
    }
  }

  /** Returns a part without rows that shares the keys. No key may be added any more. */
  def sibling: RelationPart = {
    val other = new RelationPart(index, spec, shape, stratum, keys)
    other.grow()
    other
  }

  /** Returns a part with these keys, ghosts and rows; what rules derive for it changes no row. */
  def beside: RelationPart = {
    val other = new RelationPart(index, spec, shape, stratum, keys)
    other.isTraced = isTraced
    other.state = state
    other.pending = other.accumulator()
    if (stratum.isAccumulating) other.delta = state // so rules read the rows' values
    other.ghost = other.accumulator()
    other.shareGhosts(this)
    other.grow()
    other.growGhosts()
    other
  }

  /** Takes the ghosts of a part, but not the values sent to them. */
  def shareGhosts(other: RelationPart): Unit = {
    ghosts = other.ghosts
    ghostOwner = other.ghostOwner
    ghostRemote = other.ghostRemote
    growGhosts()
  }

  /** Removes all rows; keys stay. */
  def clear(): Unit = {
    state.dirtySize = 0
    var id = 0
    while (id < keys.size) {
      if (state.flags(id) != 0) {
        state.dirty(state.dirtySize) = id
        state.dirtySize += 1
      }
      id += 1
    }
    state.clearDirty()
    currentSize = 0
    rows = 0
  }

  /** Makes the dirty rows of the state the current ones. */
  def takeDirty(): Unit = {
    currentSize = state.dirtySize
    current = state.takeDirty(current)
  }

  /** Counts the new rows of the current delta, and clears the settled flag of all of its rows. */
  def count(): Unit = {
    var i = 0
    while (i < currentSize) {
      val id = current(i)
      val before = state.flags(id)
      if ((before & Accumulator.Counted) == 0) rows += 1
      state.flags(id) = ((before | Accumulator.Counted) & ~Accumulator.Settled).toByte
      i += 1
    }
  }

  /** Clears, then sets flags of the rows of the current delta. */
  def setFlags(clear: Int = 0, set: Int = 0): Unit = state.setFlags(current, currentSize, clear, set)

  def presentIds: Array[Int] = Array.range(0, math.min(keys.size, state.capacity)).filter(isPresent)

  def isPresent(id: Int): Boolean = (state.flags(id) & Accumulator.Present) != 0

  /** Settles all rows: those that the next run does not change are not part of its result. */
  def settle(): Unit = {
    currentSize = 0
    var id = 0
    while (id < keys.size && id < state.capacity) {
      if (isPresent(id)) settle(id)
      id += 1
    }
  }

  /** Removes a row; its id stays. */
  def remove(id: Int): Unit = if (isPresent(id)) {
    state.clear(id)
    rows -= 1
  }

  /** Forgets which values were sent to other tasks, since these may have removed them. */
  def forgetSent(): Unit = {
    ghost = accumulator()
    growGhosts()
  }

  def settle(id: Int): Unit = state.flags(id) = (state.flags(id) | Accumulator.Settled).toByte

  /** Tests whether row `id` belongs to the result: it is present, and not as it was before the run. */
  def isResult(id: Int): Boolean =
    (state.flags(id) & (Accumulator.Present | Accumulator.Settled)) == Accumulator.Present

  /** Removes all rows, keeps all ids, and from then on records the parent of each change. */
  def restartTraced(): Unit = {
    isTraced = true
    forgetRows()
    grow()
    growGhosts()
  }

  /** Removes all rows and frees their memory; ids stay. The part has to grow before it gets rows. */
  def forgetRows(): Unit = {
    state = accumulator()
    pending = if (stratum.inPlace) state else accumulator()
    delta = if (stratum.isAccumulating) accumulator() else null
    ghost = accumulator()
    current = Array.emptyIntArray
    currentSize = 0
    rows = 0
  }

  /** Returns what `bytes` will be with room for all keys and ghosts. */
  def bytesWhenGrown: Long =
    accumulators.map(a => math.max(a.capacity, keys.size) * a.bytesPerId).sum +
      math.max(ghost.capacity, ghosts.size) * (ghost.bytesPerId + 8) + keyBytes + keys.size * 4L

  private def accumulators = Seq(state, pending, delta).filter(_ != null).distinct
  private def keyBytes = (keys.words.length + ghosts.words.length) * 16L

  /** Returns the allocated bytes, for the memory account. */
  def bytes: Long = {
    val values = accumulators.map(a => a.capacity * a.bytesPerId).sum
    values + ghost.capacity * (ghost.bytesPerId + 8) + keyBytes + current.length * 4L
  }
}

object RelationPart {

  /** Returns the bytes of a row without nulls, of which no other task has a ghost, in arrays without room to grow. */
  def bytesPerRow(relation: RelationSpec, stratum: StratumSpec): Long = {
    val copies = 1 + (if (stratum.inPlace) 0 else 1) + (if (stratum.isAccumulating) 1 else 0)
    copies * (8L * relation.dependents.length + 5) + 16L * relation.keys.length + 4
  }
}
