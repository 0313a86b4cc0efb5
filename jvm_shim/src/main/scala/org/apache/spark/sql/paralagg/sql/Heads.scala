package org.apache.spark.sql.paralagg.sql

import scala.jdk.CollectionConverters._

import org.antlr.v4.runtime.{CharStreams, Token}

import org.apache.spark.sql.catalyst.parser.SqlBaseLexer
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.paralagg.{ErrorCodes, SparkMinor}

/** A part of the head of a recursive CTE that Spark cannot parse. */
abstract class HeadPart { def origin: Origin }

/** An aggregate in the head of a recursive CTE: `min() AS dist`, or `min_by(dist) AS parent` with an argument. */
case class HeadAggregate(function: String, argument: Option[String], column: String, origin: Origin) extends HeadPart {

  /** Tests for a column that is computed after the recursion, and that no branch supplies. */
  def isTrace: Boolean = function == "path" || function == "hops"

  /** The largest number of elements of `collect_set(10) AS owners`, once Python has checked that it is a number. */
  def limit: Int = argument.get.toInt

  /** Tests for a column that collects the values of the branches, so that its type is an array of theirs. */
  def isSet: Boolean = function == "collect_set"
}

/**
 * A text with masked parts in its heads, so that Spark can parse it. Each `min() AS dist` is replaced by a quoted
 * identifier of the same length with the part's number, and a USING KEY clause by a last column that is such an
 * identifier. All positions stay the same.
 */
class Heads(val original: String, spans: IndexedSeq[(Int, Int, HeadPart)]) {
  import Heads.Mark

  private val masks = spans.zipWithIndex.map { case ((start, end, part), n) =>
    val mask = part match {
      case _: HeadAggregate => s"`$Mark$n`"
      case clause: UsingKey => if (clause.hasColumns) s", `$Mark$n`)" else s"(`$Mark$n`)"
    }
    mask.padTo(end - start, ' ')
  }

  /** The text for Spark's parser. */
  val text: String = spans.zip(masks).foldLeft(original) { case (result, ((start, end, _), mask)) =>
    result.substring(0, start) + mask + result.substring(end)
  }

  def isEmpty: Boolean = spans.isEmpty

  /** Returns the part that a masked column name stands for; None for a name of the user. */
  def part(column: String): Option[HeadPart] =
    if (!isEmpty && column.startsWith(Mark)) Some(spans(column.substring(Mark.length).toInt)._3) else None

  /** Returns a piece of the parsed text as the user wrote it. */
  def restored(piece: String): String = spans.zip(masks).foldLeft(piece) { case (result, ((start, end, _), mask)) =>
    result.replace(mask, original.substring(start, end))
  }

  /** Returns a position in the parsed text with the user's text. */
  def restored(origin: Origin): Origin = origin.copy(sqlText = origin.sqlText.map(restored))
}

object Heads {
  private val Mark = "\uE000" // a private-use character, which no SQL text has

  /** Finds the heads by Spark's tokens, so that strings, comments and quoted names do not matter. */
  def in(text: String): Heads = {
    // The lexer matches keywords in capitals. Each code point maps to one, so positions stay, as in Spark's stream.
    val capitals = text.codePoints.map(Character.toUpperCase(_)).toArray
    val lexer = new SqlBaseLexer(CharStreams.fromString(new String(capitals, 0, capitals.length)))
    lexer.removeErrorListeners() // Spark's parser reports errors later
    val tokens = lexer.getAllTokens.asScala.filter(_.getChannel == Token.DEFAULT_CHANNEL).toIndexedSeq
    val spans = tokens.indices
      .filter(n => is(tokens, n, SqlBaseLexer.WITH) && is(tokens, n + 1, SparkMinor.Recursive))
      .flatMap(n => new Heads.Reader(text, tokens).heads(n + 2))
    new Heads(text, spans.sortBy(_._1))
  }

  private def is(tokens: IndexedSeq[Token], n: Int, kinds: Int*): Boolean =
    n < tokens.length && kinds.contains(tokens(n).getType)

  private class Reader(text: String, tokens: IndexedSeq[Token]) {
    import SqlBaseLexer.{AS, COMMA, LEFT_PAREN, RIGHT_PAREN}

    /** Returns the aggregates of consecutive CTEs; token `at` is the name of the first one. */
    def heads(at: Int): Seq[(Int, Int, HeadPart)] = {
      val hasColumns = is(tokens, at + 1, LEFT_PAREN) && !isQuery(at + 2)
      val end = if (hasColumns) closing(at + 1) else at
      val aggregates = if (hasColumns) items(at + 2, end).filter(isAggregate).map(aggregate) else Nil
      val clause = if (isUsingKey(end + 1)) Some(usingKey(end + 1, hasColumns)) else None
      if (aggregates.nonEmpty) clause.foreach(c => UsingKey.refuseBoth(c._3.origin))
      val body = if (clause.isDefined) closing(end + 3) + 1 else end + 1
      val open = tokens.indexWhere(_.getType == LEFT_PAREN, body) // past MAX RECURSION LEVEL n, AS
      val next = if (open < 0) tokens.length else closing(open) + 1
      tokens.lift(next).foreach(refuseClause)
      aggregates ++ clause ++ (if (is(tokens, next, COMMA)) heads(next + 1) else Nil)
    }

    /** Refuses the standard's clauses after the query of a CTE, which Spark does not parse. */
    private def refuseClause(at: Token): Unit = {
      val instead = Map(
        "CYCLE" -> ("leave it out: UNION derives no row twice, and under aggregates each key has one row, so cycles end; " +
          "path() AS way in the head shows the way to each row"),
        "SEARCH" -> "write hops() AS steps or path() AS way into the head, and order the result by it")
      val word = source(Seq(at)).toUpperCase(java.util.Locale.ROOT)
      instead.get(word).foreach { hint =>
        throw new SqlProblem(ErrorCodes.SqlClause, s"the clause $word of a recursive CTE is not supported",
          hint, origin(at, at))
      }
    }

    private def isUsingKey(at: Int): Boolean = is(tokens, at, SqlBaseLexer.USING) &&
      is(tokens, at + 2, LEFT_PAREN) && source(Seq(tokens(at + 1))).equalsIgnoreCase("key") && closing(
        at + 2) < tokens.length

    /** Reads the clause at token `at`. Its span begins at the parenthesis that closes the columns, if there are some. */
    private def usingKey(at: Int, hasColumns: Boolean): (Int, Int, HeadPart) = {
      val close = closing(at + 2)
      val clause = tokens.slice(at, close + 1)
      val written = items(at + 3, close).filter(_.nonEmpty)
      val (calls, columns) = written.partition(isAggregate)
      columns.filter(_.length > 1).foreach(c => UsingKey.refuseItem(source(c), origin(c.head, c.last)))
      val place = origin(clause.head, clause.last)
      val first = if (hasColumns) tokens(at - 1) else clause.head
      (index(first.getStartIndex), index(clause.last.getStopIndex + 1),
        UsingKey(columns.map(c => KeyColumn(name(c.head), origin(c.head, c.head))), calls.map(keyed), hasColumns,
          place))
    }

    /** Reads `min(dist)`, or `min_by(parent, dist)` with the column that decides, and `AS` with the same column. */
    private def keyed(item: IndexedSeq[Token]): HeadAggregate = {
      val at = origin(item.head, item.last)
      val hasName = item.length > 2 && item(item.length - 2).getType == AS
      val call = if (hasName) item.dropRight(2) else item
      val isCall = call(1).getType == LEFT_PAREN && call.last.getType == RIGHT_PAREN
      val arguments = if (isCall) call.slice(2, call.length - 1) else IndexedSeq.empty
      if (hasName && arguments.nonEmpty && !Cte.isSame(name(arguments.head), name(item.last)))
        UsingKey.refuseOther(source(item), name(arguments.head), name(item.last), at)
      arguments.map(_.getType) match {
        case Seq(column) if column != COMMA => HeadAggregate(function(item), None, name(arguments.head), at)
        case Seq(_, COMMA, _) => HeadAggregate(function(item), Some(name(arguments(2))), name(arguments.head), at)
        case _ => UsingKey.refuseItem(source(item), at)
      }
    }

    /** Tests for `t (SELECT …)`: AS is optional, and without it there may be no head. */
    private def isQuery(at: Int): Boolean =
      is(tokens, at, SqlBaseLexer.SELECT, SqlBaseLexer.WITH, SqlBaseLexer.VALUES, SqlBaseLexer.FROM, LEFT_PAREN)

    private def closing(open: Int): Int = {
      val depths = tokens.indices.drop(open).scanLeft(0) { (depth, n) =>
        if (is(tokens, n, LEFT_PAREN)) depth + 1 else if (is(tokens, n, RIGHT_PAREN)) depth - 1 else depth
      }
      val closed = depths.indexOf(0, 1)
      if (closed < 0) tokens.length else open + closed - 1
    }

    private def items(from: Int, until: Int): Seq[IndexedSeq[Token]] = {
      val commas = (from until until).filter { n =>
        is(tokens, n, COMMA) && tokens.slice(from, n).count(_.getType == LEFT_PAREN) ==
          tokens.slice(from, n).count(_.getType == RIGHT_PAREN)
      }
      (from +: commas.map(_ + 1)).zip(commas :+ until).map { case (first, end) => tokens.slice(first, end) }
    }

    private def isAggregate(item: IndexedSeq[Token]): Boolean = item.exists(_.getType == LEFT_PAREN)

    private def function(item: IndexedSeq[Token]): String = source(item.take(1)).toLowerCase(java.util.Locale.ROOT)

    private def aggregate(item: IndexedSeq[Token]): (Int, Int, HeadPart) = {
      val at = origin(item.head, item.last)
      val close = item.indexWhere(_.getType == RIGHT_PAREN)
      val argument = item.slice(2, close)
      if (item(1).getType != LEFT_PAREN || item.length != close + 3 || item(close + 1).getType != AS) {
        throw new SqlProblem(
          ErrorCodes.SqlHead,
          s"${source(item)} in the head of a recursive CTE has no column name",
          "write an aggregate there as min() AS dist",
          at)
      }
      if (argument.length > 1) {
        throw new SqlProblem(
          ErrorCodes.SqlHeadArgument,
          s"${source(argument)} in the head of a recursive CTE is not a column",
          "write min() without an argument: it aggregates the column of the branches at its position; min_by(dist) names a column",
          origin(argument.head, argument.last))
      }
      val (start, end) = (index(item.head.getStartIndex), index(item.last.getStopIndex + 1))
      (start, end, HeadAggregate(function(item), argument.headOption.map(name), name(item.last), at))
    }

    private def name(token: Token): String = {
      val raw = source(IndexedSeq(token))
      val quotes = if (SQLConf.get.doubleQuotedIdentifiers) Seq("`", "\"") else Seq("`")
      quotes.find(raw.startsWith).fold(raw)(q => raw.substring(1, raw.length - 1).replace(q + q, q))
    }

    private def source(item: Seq[Token]): String =
      text.substring(index(item.head.getStartIndex), index(item.last.getStopIndex + 1))

    /** Returns the index in `text` of a token's position, which counts code points. */
    private def index(codePoint: Int): Int = text.offsetByCodePoints(0, codePoint)

    private def origin(first: Token, last: Token): Origin = Origin(
      Some(first.getLine),
      Some(first.getCharPositionInLine),
      Some(first.getStartIndex),
      Some(last.getStopIndex),
      Some(text))
  }
}
