package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.load.{Block, Routes}
import org.apache.spark.sql.paralagg.state.{BaseRows, RelationPart}

/**
 * The base rows of a run that goes on from a kept state: those that it gets and loses, and all of them, if the inputs
 * have them, or if the state has them from before.
 *
 * @param form what the inputs have, see `KeptSpec`
 */
final class ChangedBase(
    parts: Array[RelationPart], form: String, before: Option[Array[BaseRows]], blocks: Array[Array[Block]],
    routes: Routes) {
  private def loaded(p: RelationPart, route: Int) = blocks(route).map(b => LoadedRows(p.ids(b), p.values(b)))
  private val added = parts.map(p => loaded(p, routes.base(p.index)))
  private val lost = parts.map(p => loaded(p, routes.initial(p.index)))

  private def rows(p: RelationPart, pieces: Array[LoadedRows]) =
    BaseRows(pieces.toSeq.map(r => (r.ids, r.values)), p.valueWords)

  /** All base rows now, by relation: None where rows to remove are missing. */
  private val all: Array[Option[BaseRows]] = form match {
    case "whole" | "all" => parts.map(p => Some(rows(p, added(p.index))))
    case "changes" => parts.map { p =>
        before.get(p.index).plus(rows(p, added(p.index))).flatMap(_.plus(rows(p, lost(p.index)).negative))
      }
    case _ => Array.empty
  }

  /** Tests whether the state does not have all rows to remove. */
  def isMissing: Boolean = all.contains(None)

  /** Returns the base rows to keep for the next run, if it will get only changes. */
  def toKeep: Option[Array[BaseRows]] = if (form == "whole" || form == "changes") Some(all.flatten) else None

  /** Returns the removed rows of which no copy is left. */
  def removed(p: RelationPart): Array[LoadedRows] = lost(p.index).map { r =>
    val words = p.valueWords
    val gone = r.ids.indices.toArray.filterNot(i => all(p.index).get.contains(r.ids(i), r.values, i * words))
    LoadedRows(gone.map(r.ids(_)), gone.flatMap(i => r.values.slice(i * words, (i + 1) * words)))
  }

  /** Returns the rows from which the run starts: new ones, and those of keys that fell. */
  def starts(p: RelationPart, fallen: Array[Array[Int]]): Array[LoadedRows] =
    if (form != "changes") added(p.index)
    else {
      val (ids, values) = all(p.index).get.of(fallen(p.index))
      added(p.index) :+ LoadedRows(ids, values)
    }
}
