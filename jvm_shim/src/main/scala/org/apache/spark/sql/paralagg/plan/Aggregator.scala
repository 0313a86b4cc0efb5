package org.apache.spark.sql.paralagg.plan

/** How an aggregate merges a value into the one that is held. */
sealed trait Merge

object Merge {

  /** The smaller, or the greater, of the two is held. */
  case object Smaller extends Merge
  case object Greater extends Merge

  /** The value is added. */
  case object Sum extends Merge

  /** The operator of Java computes what is held, from two integers. */
  final case class Operator(symbol: String) extends Merge

  /** A method of `codegen.Sums` computes it, from two integers and the bytes of their type. */
  final case class Method(name: String) extends Merge

  /** The value comes with the one of another column that orders the rows (`min_by`, `max_by`). */
  case object Carried extends Merge

  /** A user's expressions compute it. */
  case object Custom extends Merge
}

/**
 * What the engine knows of an aggregate; its twin in Python is `program/aggregators.py`.
 *
 * @param identity the word that is held before the first value; None: the greatest or the least of the type
 * @param isCounted the column counts or adds up the rows of the relation that it follows
 */
final case class Aggregator(merge: Merge, identity: Option[Long] = None, isCounted: Boolean = false)

/** All aggregates by name. No other place of the shim knows them. */
object Aggregator {
  import Merge._

  private val named = Map(
    "min" -> Aggregator(Smaller),
    "max" -> Aggregator(Greater),
    "sum" -> Aggregator(Sum, Some(0L)),
    "count" -> Aggregator(Sum, Some(0L)),
    "any" -> Aggregator(Greater, Some(0L)),
    "all" -> Aggregator(Smaller, Some(1L)),
    "bit_or" -> Aggregator(Operator("|"), Some(0L)),
    "bit_and" -> Aggregator(Operator("&"), Some(-1L)),
    "gcd" -> Aggregator(Method("gcd"), Some(0L)),
    "min_by" -> Aggregator(Carried),
    "max_by" -> Aggregator(Carried),
    "mcount" -> Aggregator(Greater, Some(0L), isCounted = true),
    "msum" -> Aggregator(Greater, Some(0L), isCounted = true))

  /** A user's: the first value is stored as it is, so its identity is never read. */
  private val custom = Aggregator(Custom, Some(0L))

  def of(name: String, isCustom: Boolean): Aggregator =
    if (isCustom) custom else named.getOrElse(name, throw new IllegalArgumentException(s"aggregator $name"))
}
