"""A text -> its syntax tree: ``tokens``, lark's LALR parser over grammar.lark, ``transform``; or the first problem.

lark is loaded and its tables are built when the first text comes.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.datalog.places import Places
from pyspark_paralagg.datalog.syntax import Rule, Span, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lark import Lark, Token


def parse(source: str, name: str = "<text>") -> Text:
    """The syntax tree of ``source``; raises ``DatalogError`` with the place of the first problem.

    >>> parse("path(x, y) :- edge(x, y).").clauses[0].heads[0].relation
    'path'
    """
    from pyspark_paralagg.datalog.problems import Problem  # noqa: PLC0415 - with lark, when the first text comes

    try:
        clauses = _clauses(source)
    except Problem as p:
        raise Places(source, name).error(p.code, p.message, p.span, hint=p.hint) from None
    starts = _line_starts(source)
    return Text(tuple(_with_text(c, source, starts) if isinstance(c, Rule) else c for c in clauses), source, name)


def _clauses(source: str) -> Sequence[Any]:
    from lark import Token, UnexpectedToken  # noqa: PLC0415 - lark is loaded when the first text comes

    from pyspark_paralagg.datalog.tokens import tokenize  # noqa: PLC0415 - with lark

    tokens, starts, problem = tokenize(source)
    run = _parser().parse_interactive()
    at = 0
    try:
        for at, token in enumerate(tokens):  # noqa: B007 - read when a token does not fit
            run.feed_token(token)
        if problem is not None:
            raise problem
        at = len(tokens)
        tokens.append(Token.new_borrow_pos("$END", "", tokens[-1]) if tokens else Token("$END", "", line=1, column=1))
        clauses: Sequence[Any] = run.feed_token(tokens[-1])
    except UnexpectedToken:
        from pyspark_paralagg.datalog.stuck import Stuck  # noqa: PLC0415 - most texts are right
        from pyspark_paralagg.datalog.syntax_errors import explain  # noqa: PLC0415 - likewise

        raise explain(Stuck(tokens, starts, at, _accepted(tokens[:at]))) from None
    return clauses


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

    from pyspark_paralagg.datalog.transform import Transform  # noqa: PLC0415 - with lark

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
