package org.apache.spark.sql.paralagg.sql

import scala.jdk.CollectionConverters._

import org.antlr.v4.runtime.{CharStreams, Token}

import org.apache.spark.sql.catalyst.parser.SqlBaseLexer
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.paralagg.ErrorCodes

/** An aggregate in the head of a recursive CTE, `min() AS dist`; `min_by(dist) AS parent` has an argument. */
case class HeadAggregate(function: String, argument: Option[String], column: String, origin: Origin)

/**
 * A text whose heads hold no aggregates any more, so that Spark can parse it: each `min() AS dist` has become a quoted
 * identifier of the same length, which says which aggregate it was. Every other position is as it was.
 */
class Heads(val original: String, spans: IndexedSeq[(Int, Int, HeadAggregate)]) {
  import Heads.Mark

  private val masks = spans.zipWithIndex.map { case ((start, end, _), n) => s"`$Mark$n`".padTo(end - start, ' ') }

  /** What Spark is to parse. */
  val text: String = spans.zip(masks).foldLeft(original) { case (so, ((start, end, _), mask)) =>
    so.substring(0, start) + mask + so.substring(end)
  }

  def isEmpty: Boolean = spans.isEmpty

  /** The aggregate that a column's name in a head stands for, if it is none of the user's. */
  def aggregate(column: String): Option[HeadAggregate] =
    if (!isEmpty && column.startsWith(Mark)) Some(spans(column.substring(Mark.length).toInt)._3) else None

  /** A piece of the parsed text as the user wrote it. */
  def restored(piece: String): String = spans.zip(masks).foldLeft(piece) { case (so, ((start, end, _), mask)) =>
    so.replace(mask, original.substring(start, end))
  }

  /** A place in the parsed text as a place in the user's: the positions are the same. */
  def restored(origin: Origin): Origin = origin.copy(sqlText = origin.sqlText.map(restored))
}

object Heads {
  private val Mark = "\uE000" // private use: no text of SQL has it

  /** Finds the heads by Spark's own tokens, so strings, comments and quoted names are no matter. */
  def in(text: String): Heads = {
    // The lexer knows keywords in capitals. One code point for one: positions stay, as they do in Spark's own stream.
    val capitals = text.codePoints.map(Character.toUpperCase(_)).toArray
    val lexer = new SqlBaseLexer(CharStreams.fromString(new String(capitals, 0, capitals.length)))
    lexer.removeErrorListeners() // the parser proper will say it
    val tokens = lexer.getAllTokens.asScala.filter(_.getChannel == Token.DEFAULT_CHANNEL).toIndexedSeq
    val spans = tokens.indices
      .filter(n => is(tokens, n, SqlBaseLexer.WITH) && is(tokens, n + 1, SqlBaseLexer.RECURSIVE))
      .flatMap(n => new Heads.Reader(text, tokens).heads(n + 2))
    new Heads(text, spans.sortBy(_._1))
  }

  private def is(tokens: IndexedSeq[Token], n: Int, kinds: Int*): Boolean =
    n < tokens.length && kinds.contains(tokens(n).getType)

  private class Reader(text: String, tokens: IndexedSeq[Token]) {
    import SqlBaseLexer.{AS, COMMA, LEFT_PAREN, RIGHT_PAREN}

    /** The aggregates of the CTEs that follow each other from token `at` on, the first one's name. */
    def heads(at: Int): Seq[(Int, Int, HeadAggregate)] = {
      val (found, body) = if (is(tokens, at + 1, LEFT_PAREN) && !isQuery(at + 2)) {
        val end = closing(at + 1)
        (items(at + 2, end).filter(isAggregate).map(aggregate), end + 1)
      } else (Nil, at + 1)
      val open = tokens.indexWhere(_.getType == LEFT_PAREN, body) // past MAX RECURSION LEVEL n, AS
      val next = if (open < 0) tokens.length else closing(open) + 1
      found ++ (if (is(tokens, next, COMMA)) heads(next + 1) else Nil)
    }

    /** `t (SELECT …)`: the word AS may be left out, and then there may be no head. */
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

    private def aggregate(item: IndexedSeq[Token]): (Int, Int, HeadAggregate) = {
      val at = origin(item.head, item.last)
      val close = item.indexWhere(_.getType == RIGHT_PAREN)
      val argument = item.slice(2, close)
      if (item(1).getType != LEFT_PAREN || item.length != close + 3 || item(close + 1).getType != AS) {
        throw new SqlProblem(
          ErrorCodes.SqlHead,
          s"${shown(item)} in the head of a recursive CTE names no column",
          "an aggregate there is written as min() AS dist",
          at)
      }
      if (argument.length > 1) {
        throw new SqlProblem(
          ErrorCodes.SqlHeadArgument,
          s"${shown(argument)} in the head of a recursive CTE is no column",
          "min() has no argument there: it takes what the branches give in its place; min_by(dist) names a column",
          origin(argument.head, argument.last))
      }
      val function = shown(item.take(1)).toLowerCase(java.util.Locale.ROOT)
      val (start, end) = (index(item.head.getStartIndex), index(item.last.getStopIndex + 1))
      (start, end, HeadAggregate(function, argument.headOption.map(name), name(item.last), at))
    }

    private def name(token: Token): String = {
      val written = shown(IndexedSeq(token))
      val quotes = if (SQLConf.get.doubleQuotedIdentifiers) Seq("`", "\"") else Seq("`")
      quotes.find(written.startsWith).fold(written)(q => written.substring(1, written.length - 1).replace(q + q, q))
    }

    private def shown(item: IndexedSeq[Token]): String =
      text.substring(index(item.head.getStartIndex), index(item.last.getStopIndex + 1))

    /** Tokens count code points. */
    private def index(codePoint: Int): Int = text.offsetByCodePoints(0, codePoint)

    private def origin(first: Token, last: Token): Origin = Origin(
      Some(first.getLine),
      Some(first.getCharPositionInLine),
      Some(first.getStartIndex),
      Some(last.getStopIndex),
      Some(text))
  }
}
