package org.apache.spark.sql.paralagg.plan

/** The merge of a value into the current value of an aggregate. */
sealed trait Merge

object Merge {

  /** Keeps the smaller, or the greater, of the two. */
  case object Smaller extends Merge
  case object Greater extends Merge

  /** Adds the value. */
  case object Sum extends Merge

  /** Applies a Java operator to two integers. */
  final case class Operator(symbol: String) extends Merge

  /** Calls a method of `codegen.Sums` with two integers and the bytes of their type. */
  final case class Method(name: String) extends Merge

  /** Takes the value of the row that another column selects (`min_by`, `max_by`). */
  case object Carried extends Merge

  /** Evaluates a user's expressions. */
  case object Custom extends Merge
}

/**
 * The properties of an aggregate; `program/aggregators.py` is the same in Python.
 *
 * @param identity the word before the first value; None: the greatest or the least word of the type
 * @param isCounted the rows of the relation that it follows are its witnesses
 */
final case class Aggregator(merge: Merge, identity: Option[Long] = None, isCounted: Boolean = false)

/** All aggregates by name, the only such list in the shim. */
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
    "msum" -> Aggregator(Greater, Some(0L), isCounted = true),
    "h_index" -> Aggregator(Smaller, isCounted = true))

  /** A user's aggregate. It stores the first value as it is, so the identity is never read. */
  private val custom = Aggregator(Custom, Some(0L))

  def of(name: String, isCustom: Boolean): Aggregator =
    if (isCustom) custom else named.getOrElse(name, throw new IllegalArgumentException(s"aggregator $name"))
}
