package org.apache.spark.sql.paralagg.loop

import org.apache.spark.sql.paralagg.load.{Block, Routes}
import org.apache.spark.sql.paralagg.state.{BaseRows, RelationPart}

/**
 * The base rows of a run that goes on from a kept state: those that it gets and loses, and all of them, if the inputs
 * have them, or if the state has them from before.
 *
 * @param form what the inputs have, see `KeptSpec`
 * @param adds whether rows add up, so that each copy counts
 */
final class ChangedBase(
    parts: Array[RelationPart], form: String, before: Option[Array[BaseRows]], blocks: Array[Array[Block]],
    routes: Routes, adds: Boolean) {
  private def loaded(p: RelationPart, route: Int) = blocks(route).map(b => LoadedRows(p.ids(b), p.values(b)))
  private val added = parts.map(p => loaded(p, routes.base(p.index)))
  private val lost = parts.map(p => loaded(p, routes.initial(p.index)))

  private def rows(p: RelationPart, pieces: Array[LoadedRows]) = ChangedBase.rows(p, pieces)

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

  /** Returns the removed rows that count: those of which no copy is left, or all of them. */
  def removed(p: RelationPart): Array[LoadedRows] =
    if (adds) lost(p.index)
    else lost(p.index).map(only(p, _)((r, i) => !all(p.index).get.contains(r.ids(i), r.values, i * p.valueWords)))

  /** Returns the rows from which the run starts: new ones, and those of keys that fell. */
  def starts(p: RelationPart, fallen: Array[Array[Int]]): Array[LoadedRows] =
    if (form != "changes") added(p.index)
    else {
      val fell = fallen(p.index).toSet
      val (ids, values) = all(p.index).get.of(fallen(p.index), adds)
      added(p.index).map(only(p, _)((r, i) => !fell(r.ids(i)))) :+ LoadedRows(ids, values)
    }

  /** Returns the rows, by their positions, for which `holds`. */
  private def only(p: RelationPart, r: LoadedRows)(holds: (LoadedRows, Int) => Boolean): LoadedRows = {
    val words = p.valueWords
    val kept = r.ids.indices.toArray.filter(holds(r, _))
    LoadedRows(kept.map(r.ids(_)), kept.flatMap(i => r.values.slice(i * words, (i + 1) * words)))
  }
}

object ChangedBase {

  /** Returns base rows as a state keeps them. */
  def rows(p: RelationPart, pieces: Array[LoadedRows]): BaseRows =
    BaseRows(pieces.toSeq.map(r => (r.ids, r.values)), p.valueWords)
}
