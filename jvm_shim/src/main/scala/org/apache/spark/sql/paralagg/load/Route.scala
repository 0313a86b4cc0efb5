package org.apache.spark.sql.paralagg.load

import org.apache.spark.sql.paralagg.plan.{StaticIndexSpec, StratumSpec}
import org.apache.spark.sql.types.{DataType, StringType}

/**
 * A route of an input's rows: the columns to load, and the columns whose hash selects the task.
 *
 * `partitionBy` are positions in the input; without any, and not `everywhere`, all rows go to task 0. Rows with a null
 * in one of `notNull` never join and are dropped.
 */
case class Route(
    id: Int,
    input: Int,
    columns: Array[Int],
    types: Array[DataType],
    partitionBy: Array[Int],
    everywhere: Boolean,
    notNull: Array[Int]) {
  val stringColumns: Array[Int] = types.indices.filter(types(_).isInstanceOf[StringType]).toArray

  /** The most bytes of a row in a block. */
  def bytes: Int = types.map(Words.of(_).bytes).sum
}

/** All routes of a stratum; ids by relation (`base`, `initial`: -1 if none) and by static index (`removed`: if any). */
case class Routes(
    all: Array[Route], base: Array[Int], initial: Array[Int], static: Map[Int, Int],
    removed: Map[Int, Int] = Map.empty) {
  def ofInput(input: Int): Array[Route] = all.filter(_.input == input)
}

object Routes {
  def of(stratum: StratumSpec): Routes = {
    val all = Array.newBuilder[Route]
    var next = 0
    def route(input: Int, columns: Array[Int], by: Array[Int], everywhere: Boolean, notNull: Array[Int]): Int = {
      val exprs = stratum.input(input).exprs
      all += Route(next, input, columns, columns.map(exprs(_).dataType), by, everywhere, notNull)
      next += 1
      next - 1
    }
    def relationRoute(input: Int, relation: Int): Int = {
      val r = stratum.relations(relation)
      route(input, r.columns.indices.toArray, r.distributeBy, everywhere = false, Array.empty)
    }
    val base = stratum.relations.indices.map(r => relationRoute(stratum.relations(r).base, r)).toArray
    val initial = stratum.relations.indices.map(r => stratum.relations(r).initial.fold(-1)(relationRoute(_, r))).toArray
    def staticRoute(i: StaticIndexSpec, input: Int): (Int, Int) =
      i.id -> route(input, i.keys ++ i.payload, i.partitionBy, i.everywhere, i.keys)
    val static = stratum.staticIndexes.map(i => staticRoute(i, i.input)).toMap
    val removed = stratum.staticIndexes.flatMap(i => i.removed.map(staticRoute(i, _))).toMap // last: `KeptState.unfit`
    Routes(all.result(), base, initial, static, removed)
  }
}
