package org.apache.spark.sql.paralagg.state

/**
 * Settled rows that a run derives again, or applies the rules to again since new static rows join them, with the values
 * that they had. They belong to the result of the run only if these change.
 */
final class ReappliedRows(part: RelationPart, ids: Array[Int]) {
  private val columns = part.state.columns.map(c => ids.map(c(_)))
  private val valid = part.state.valid.map(v => if (v == null) null else ids.map(v(_)))

  /** Makes them part of the first delta. */
  def enqueue(): Unit = ids.foreach(part.state.enqueue)

  /** Settles those whose values are as before. */
  def settleUnchanged(): Unit = ids.indices.foreach { at =>
    val same = part.isPresent(ids(at)) && columns.indices.forall { j =>
      columns(j)(at) == part.state.columns(j)(ids(at)) && (valid(j) == null || valid(j)(at) == part.state.valid(j)(
        ids(at)))
    }
    if (same) part.settle(ids(at))
  }
}
