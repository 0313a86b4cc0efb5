package org.apache.spark.sql.paralagg.sql

import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.paralagg.ErrorCodes

/**
 * The clause `USING KEY (node, min(dist), min_by(parent, dist))` of a recursive CTE, in DuckDB's syntax. It is another
 * spelling of the head `(node, min() AS dist, min_by(dist) AS parent)`.
 *
 * @param calls the aggregates, and the paths and hops, which no branch supplies
 * @param hasColumns the CTE lists its columns before the clause; otherwise the first branch names them
 */
case class UsingKey(keys: Seq[KeyColumn], calls: Seq[HeadAggregate], hasColumns: Boolean, origin: Origin)
    extends HeadPart {

  private val aggregates = calls.filterNot(_.isTrace)

  /** Returns the aggregates by column, as the columns are written in `names`. The clause must list each column once. */
  def resolved(cte: String, names: Seq[String]): Map[String, HeadAggregate] = {
    def column(written: String, at: Origin): String = names.find(Cte.isSame(_, written)).getOrElse {
      UsingKey.refuse(s"USING KEY lists $written, which is no column of $cte",
        s"its columns are ${names.mkString(", ")}", at)
    }
    val keyed = keys.map(k => column(k.name, k.origin) -> k.origin)
    val aggregated = aggregates.map { a =>
      val argument = if (a.isSet) a.argument else a.argument.map(column(_, a.origin))
      a.copy(column = column(a.column, a.origin), argument = argument)
    }
    val listed = keyed ++ aggregated.map(a => a.column -> a.origin)
    listed.groupBy(_._1).values.find(_.length > 1).foreach { twice =>
      UsingKey.refuse(s"USING KEY lists the column ${twice.head._1} twice", "list it as a key or under one aggregate",
        twice(1)._2)
    }
    val omitted = names.filterNot(n => listed.exists(_._1 == n))
    omitted.headOption.filter(_ => aggregates.nonEmpty).foreach { n =>
      val order = aggregated.find(_.argument.isEmpty).fold("d")(_.column)
      UsingKey.refuse(
        s"USING KEY does not list the column $n of $cte, whose value would depend on the order of evaluation",
        s"list $n as a key, or under an aggregate: min($n), or min_by($n, $order) for the $n of the row with the least $order",
        origin)
    }
    // Without any aggregate DuckDB keeps the last row of a key; Python finds out whether it is the least or the greatest.
    (aggregated ++ omitted.map(HeadAggregate("last", None, _, origin))).map(a => a.column -> a).toMap
  }
}

/** A key column in a USING KEY clause, as written. */
case class KeyColumn(name: String, origin: Origin)

object UsingKey {

  /** Refuses an item that is neither a column nor an aggregate of one. */
  def refuseItem(item: String, at: Origin): Nothing = refuse(
    s"$item in USING KEY is neither a column nor an aggregate of a column",
    "write node, min(dist) or min_by(parent, dist); compute values in the branches",
    at)

  /** Refuses an aggregate of one column into another one. */
  def refuseOther(item: String, from: String, to: String, at: Origin): Nothing = refuse(
    s"$item in USING KEY aggregates $from into $to",
    s"select its values at the position of $to in the branches, and aggregate $to",
    at)

  /** Refuses a CTE with aggregates in both places. */
  def refuseBoth(at: Origin): Nothing =
    refuse("the head has aggregates and a USING KEY clause", "write the aggregates in one of the two", at)

  private def refuse(text: String, hint: String, at: Origin): Nothing =
    throw new SqlProblem(ErrorCodes.SqlUsingKey, text, hint, at)
}
