"""Parse a text into its syntax tree: ``tokens``, lark's LALR parser over grammar.lark, ``transform``.

After a problem the parser continues with the next clause, so one error reports all problems of a text. The first
call of ``parse`` imports lark and builds its tables.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.parse.syntax import Component, Rule, Span, Text
from pyspark_paralagg.errors import combine_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lark import Lark, Token

    from pyspark_paralagg.datalog.parse.problems import Problem
    from pyspark_paralagg.datalog.parse.syntax import Clause

MAX_PROBLEMS = 20
"""The maximum number of problems of a text that one error reports."""


def parse(source: str, name: str = "<text>") -> Text:
    """Return the syntax tree of ``source``; raise ``DatalogError`` with the places of its problems.

    >>> parse("path(x, y) :- edge(x, y).").clauses[0].heads[0].relation
    'path'
    """
    clauses, problems = _clauses(source)
    if problems:
        places = Places(source, name)
        raise combine_errors([places.error(p.code, p.message, p.span, hint=p.hint) for p in problems]) from None
    starts = _line_starts(source)
    return Text(tuple(_with_text(c, source, starts) for c in clauses), source, name)


def _clauses(source: str) -> tuple[Sequence[Any], list[Problem]]:
    """Return the clauses and the problems: at most one for each clause, and at most one of the tokenizer."""
    from lark import Token, UnexpectedToken  # noqa: PLC0415 - lark is loaded with the first text

    from pyspark_paralagg.datalog.parse.problems import Problem  # noqa: PLC0415 - with lark
    from pyspark_paralagg.datalog.parse.tokens import tokenize  # noqa: PLC0415 - likewise

    tokens, starts, token_problem = tokenize(source)
    is_complete = token_problem is None
    if is_complete:
        tokens.append(Token.new_borrow_pos("$END", "", tokens[-1]) if tokens else Token("$END", "", line=1, column=1))
    problems: list[Problem] = []
    clauses: Sequence[Any] = []
    first = 0
    while first < len(tokens) and len(problems) < MAX_PROBLEMS:
        parser = _parser().parse_interactive()
        position = first
        try:
            for position in range(first, len(tokens)):
                clauses = parser.feed_token(tokens[position])
            first = len(tokens)
        except (UnexpectedToken, Problem) as error:
            problems.append(error if isinstance(error, Problem) else _explain(tokens, starts, first, position))
            first = next((s for s in starts if s > first and s >= position), len(tokens))
    if token_problem is not None and len(problems) < MAX_PROBLEMS:
        problems.append(token_problem)
    return clauses, problems


def _explain(tokens: Sequence[Token], starts: Sequence[int], first: int, position: int) -> Problem:
    """Explain the unexpected token at ``position``; the parser had started at token ``first``."""
    from pyspark_paralagg.datalog.parse.stuck import Stuck  # noqa: PLC0415 - needed for invalid texts only
    from pyspark_paralagg.datalog.parse.syntax_errors import explain  # noqa: PLC0415 - likewise

    return explain(Stuck(tokens, starts, position, _accepted(tokens[first:position])))


def _accepted(tokens: Sequence[Token]) -> set[str]:
    """Return the types of tokens that may follow ``tokens``."""
    parser = _parser().parse_interactive()
    parser.parser_state.parse_conf = copy(parser.parser_state.parse_conf)
    parser.parser_state.parse_conf.callbacks = {}  # only the accepted types matter, so no nodes are built
    for token in tokens:
        parser.feed_token(token)
    accepted: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
    return accepted


@cache
def _parser() -> Lark:
    from lark import Lark  # noqa: PLC0415 - lark is loaded with the first text
    from lark.lexer import Lexer  # noqa: PLC0415 - with lark

    from pyspark_paralagg.datalog.parse.transform import Transform  # noqa: PLC0415 - with lark

    class _ExternalTokens(Lexer):
        """A lexer that yields nothing: ``_clauses`` feeds the tokens to the parser."""

        def __init__(self, _: object) -> None: ...

        def lex(self, *_: object) -> Iterator[Token]:
            """Return no tokens."""
            return iter(())

    grammar = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", start="text", lexer=_ExternalTokens, transformer=Transform())


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _with_text(rule: Clause, source: str, line_starts: Sequence[int]) -> Clause:
    """Return ``rule`` with its text, and a component with that of its rules."""
    if isinstance(rule, Component):
        return replace(rule, clauses=tuple(_with_text(c, source, line_starts) for c in rule.clauses))
    if not isinstance(rule, Rule):
        return rule
    span: Span = rule.span
    text = source[line_starts[span.line - 1] + span.column - 1 : line_starts[span.end_line - 1] + span.end_column - 1]
    return replace(rule, text=text)
