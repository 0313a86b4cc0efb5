"""A text -> its syntax tree: ``tokens``, lark's LALR parser over grammar.lark, ``transform``; or what is wrong with it.

Behind a problem the parser goes on with the next clause, so that a text's problems are found together. lark is loaded
and its tables are built when the first text comes.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.parse.syntax import Rule, Span, Text
from pyspark_paralagg.errors import together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lark import Lark, Token

    from pyspark_paralagg.datalog.parse.problems import Problem

MOST_PROBLEMS = 20
"""Of a text, told at once."""


def parse(source: str, name: str = "<text>") -> Text:
    """The syntax tree of ``source``; raises ``DatalogError`` with the places of its problems.

    >>> parse("path(x, y) :- edge(x, y).").clauses[0].heads[0].relation
    'path'
    """
    clauses, problems = _clauses(source)
    if problems:
        places = Places(source, name)
        raise together([places.error(p.code, p.message, p.span, hint=p.hint) for p in problems]) from None
    starts = _line_starts(source)
    return Text(tuple(_with_text(c, source, starts) if isinstance(c, Rule) else c for c in clauses), source, name)


def _clauses(source: str) -> tuple[Sequence[Any], list[Problem]]:
    """The clauses, and what is wrong: with each clause one problem, up to signs that are none."""
    from lark import Token, UnexpectedToken  # noqa: PLC0415 - lark is loaded when the first text comes

    from pyspark_paralagg.datalog.parse.problems import Problem  # noqa: PLC0415 - with lark
    from pyspark_paralagg.datalog.parse.tokens import tokenize  # noqa: PLC0415 - likewise

    tokens, starts, problem = tokenize(source)
    is_whole = problem is None
    if is_whole:
        tokens.append(Token.new_borrow_pos("$END", "", tokens[-1]) if tokens else Token("$END", "", line=1, column=1))
    problems: list[Problem] = []
    clauses: Sequence[Any] = []
    first = 0
    while first < len(tokens) and len(problems) < MOST_PROBLEMS:
        run = _parser().parse_interactive()
        at = first
        try:
            for at in range(first, len(tokens)):
                clauses = run.feed_token(tokens[at])
            first = len(tokens)
        except (UnexpectedToken, Problem) as wrong:
            problems.append(wrong if isinstance(wrong, Problem) else _explained(tokens, starts, first, at))
            first = next((s for s in starts if s > first and s >= at), len(tokens))
    if problem is not None and len(problems) < MOST_PROBLEMS:
        problems.append(problem)
    return clauses, problems


def _explained(tokens: Sequence[Token], starts: Sequence[int], first: int, at: int) -> Problem:
    """What to say of the token that does not fit; the parser had begun with ``first``."""
    from pyspark_paralagg.datalog.parse.stuck import Stuck  # noqa: PLC0415 - most texts are right
    from pyspark_paralagg.datalog.parse.syntax_errors import explain  # noqa: PLC0415 - likewise

    return explain(Stuck(tokens, starts, at, _accepted(tokens[first:at])))


def _accepted(tokens: Sequence[Token]) -> set[str]:
    """The types of tokens that may follow ``tokens``."""
    run = _parser().parse_interactive()
    run.parser_state.parse_conf = copy(run.parser_state.parse_conf)
    run.parser_state.parse_conf.callbacks = {}  # what the tokens mean was told, or is not of interest any more
    for token in tokens:
        run.feed_token(token)
    accepted: set[str] = run.accepts()  # type: ignore[no-untyped-call]
    return accepted


@cache
def _parser() -> Lark:
    from lark import Lark  # noqa: PLC0415 - lark is loaded when the first text comes
    from lark.lexer import Lexer  # noqa: PLC0415 - with lark

    from pyspark_paralagg.datalog.parse.transform import Transform  # noqa: PLC0415 - with lark

    class Handed(Lexer):
        """The tokens are handed to the parser one by one."""

        def __init__(self, _: object) -> None: ...

        def lex(self, *_: object) -> Iterator[Token]:
            """Nothing of its own."""
            return iter(())

    grammar = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", start="text", lexer=Handed, transformer=Transform())


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _with_text(rule: Rule, source: str, starts: Sequence[int]) -> Rule:
    span: Span = rule.span
    text = source[starts[span.line - 1] + span.column - 1 : starts[span.end_line - 1] + span.end_column - 1]
    return replace(rule, text=text)
