"""Define syntax problems, and the Soufflé features that are refused by name with an alternative.

``tokens``, ``transform`` and ``syntax_errors`` raise a ``Problem``; ``parse`` converts it to a ``DatalogError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pyspark_paralagg.datalog.parse.syntax import Span

if TYPE_CHECKING:
    from lark import Token

SYNTAX = "PARALAGG_DATALOG_SYNTAX"
UNSUPPORTED = "PARALAGG_DATALOG_UNSUPPORTED"


class Problem(Exception):  # noqa: N818 - never leaves the package
    """A syntax problem at ``span``."""

    def __init__(self, message: str, span: Span, hint: str | None = None, *, code: str = SYNTAX) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.code = code


class Placed(Protocol):
    """A syntax node, or a raw node that becomes one."""

    @property
    def span(self) -> Span:
        """The node's place in the text."""


def place(token: Token) -> Span:
    """Return the span of ``token``."""
    return Span(token.line or 1, token.column or 1, token.end_line or 1, token.end_column or 1)


def end(token: Token) -> Span:
    """Return the span of one column right after ``token``."""
    return Span(token.end_line or 1, token.end_column or 1, token.end_line or 1, (token.end_column or 1) + 1)


def between(first: Token | Placed, last: Token | Placed) -> Span:
    """Return the span from ``first`` to ``last``, both included."""
    start = first.span if hasattr(first, "span") else place(first)
    stop = last.span if hasattr(last, "span") else place(last)
    return Span(start.line, start.column, stop.end_line, stop.end_column)


_REFUSED = {
    "counter": (
        "the counters `$` and `recursive_iteration_cnt()` are not supported",
        "number the rows of a rule by `autoinc()` in its head",
    ),
    "stateful": (
        "functors with access to Soufflé's tables are not supported",
        "remove the word; the Python function gets symbols as texts",
    ),
    "aggregator": (
        "aggregates of Soufflé's interface (`@@name`) are not supported",
        "define one with `ra.aggregator(...)` and use it in a rule's head: `$NAME(x)`",
    ),
    "annotation": ("annotations are not supported", "remove the `@[...]`, which does not change the result"),
    "preprocessor": (
        "preprocessor lines are not supported",
        "run the preprocessor first, as Soufflé does: `paralagg run --cpp program.dl`, or `cpp -P program.dl`",
    ),
    "include": (
        "`.include` and `.once` need a file: `paralagg run` reads them as lines of their own",
        "join the files into one text",
    ),
    "lattice": (
        "lattices are not supported in this form",
        "aggregate in the head: `r(x, $MAX(y)) :- ...`, or define the lattice's join with `ra.aggregator(...)`",
    ),
    "debug_delta": ("debug_delta is not supported", "read the changed rows of each iteration in the report of the run"),
}


def refused(feature: str, span: Span, spelling: str | None = None) -> Problem:
    """Return the problem for an unsupported Soufflé feature; ``spelling`` is how the text writes it."""
    message, hint = _REFUSED[feature]
    return Problem(message if spelling is None else f"`{spelling}`: {message}", span, hint, code=UNSUPPORTED)
