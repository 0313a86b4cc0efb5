package org.apache.spark.sql.paralagg.state

/**
 * Rows of a kept state that a run derives again.
 *
 * @param before parts with the values that these rows had, by relation; they are those of `parts` now
 * @param ids the ids of the rows, by relation
 * @param isAny whether any task has such a row
 */
final class FallenRows(
    parts: Array[RelationPart], before: Array[RelationPart], val ids: Array[Array[Int]], val isAny: Boolean) {

  /** The rows, which belong to the result of the run only if they change. */
  val derivedAgain: Array[ReappliedRows] = parts.map(p => new ReappliedRows(p, ids(p.index)))

  /** Returns the rows that have left: for each relation a part with their values, and their ids. */
  def gone: Seq[(RelationPart, Iterator[Int])] =
    parts.toSeq.map(p => before(p.index) -> ids(p.index).iterator.filterNot(p.isPresent))
}

object FallenRows {
  def none(parts: Array[RelationPart]): FallenRows =
    new FallenRows(parts, parts, parts.map(_ => Array.emptyIntArray), isAny = false)

  /** Returns all rows, which the parts then have no more; from then on they record the parent of each row. */
  def restart(parts: Array[RelationPart]): FallenRows = {
    val before = parts.map(_.beside)
    val ids = parts.map(_.presentIds)
    val all = new FallenRows(parts, before, ids, isAny = true)
    parts.foreach(_.restartTraced())
    all
  }
}
