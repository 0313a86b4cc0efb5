"""Collect all problems of a text: remove the clause with a problem and resolve the remaining text again.

Problems that only the removal of a clause causes are dropped, such as an unknown relation that the clause derived.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.parse import MAX_PROBLEMS
from pyspark_paralagg.datalog.resolve.expand import nodes
from pyspark_paralagg.errors import ParalaggError, combine_errors
from pyspark_paralagg.program.functor import SIGN

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

_MISSING_NAME_CODES = (
    "PARALAGG_UNKNOWN_RELATION", "PARALAGG_DATALOG_INPUT", "PARALAGG_NO_OUTPUT", "PARALAGG_DATALOG_FUNCTOR"
)  # fmt: skip
_DECLARATION_CODES = ("PARALAGG_DATALOG_TYPE", "PARALAGG_DATALOG_ARITY", "PARALAGG_BAD_FACT", "PARALAGG_BAD_OPTION")


def with_all_problems(text: syntax.Text, use: Callable[[syntax.Text], Result]) -> Result:
    """Return ``use(text)``; if it raises, collect the problems of the remaining text, too, and raise them as one."""
    problems: list[ParalaggError] = []
    removed: list[syntax.Clause] = []
    remaining = text
    while len(problems) < MAX_PROBLEMS:
        try:
            result = use(remaining)
        except ParalaggError as problem:  # noqa: PERF203 - each problem ends a round
            clause = _clause_of(problem, remaining)
            if not _is_consequence(problem, clause, removed):
                problems.append(problem)
            if clause is None:
                break
            removed.append(clause)
            remaining = replace(remaining, clauses=tuple(c for c in remaining.clauses if c is not clause))
        else:
            if not problems:
                return result
            break
    raise combine_errors(problems) from None


def _clause_of(problem: ParalaggError, text: syntax.Text) -> syntax.Clause | None:
    """Return the last clause that begins at or before the problem; of ``.output a, b`` the one of its relation."""
    if problem.position is None:
        return None
    before = [c for c in text.clauses if (c.span.line, c.span.column) <= problem.position]

    def nearness(c: syntax.Clause) -> tuple[int, int, bool]:
        return c.span.line, c.span.column, getattr(c, "relation", None) == problem.value

    return max(before, key=nearness, default=None)


def _is_consequence(problem: ParalaggError, clause: syntax.Clause | None, removed: list[syntax.Clause]) -> bool:
    """Return whether the absence of the ``removed`` clauses causes ``problem``."""
    if problem.position is None:  # an input that no remaining clause reads
        return bool(removed)
    defined = {name for c in removed for name in _defined_by(c)}
    declared = {c.relation for c in removed if isinstance(c, syntax.Declaration)}
    if problem.code in _MISSING_NAME_CODES and problem.value in defined:
        return True
    if problem.code == "PARALAGG_DATALOG_TYPE" and any(isinstance(c, syntax.TypeAlias) for c in removed):
        return True
    if problem.may_follow_from_others:
        return bool(removed)
    named = {getattr(n, "relation", None) for n in nodes(clause)}
    return problem.code in _DECLARATION_CODES and not named.isdisjoint(declared)


def _defined_by(clause: syntax.Clause) -> list[str]:
    if isinstance(clause, syntax.Rule):
        return [h.relation for h in clause.heads]
    if isinstance(clause, syntax.Functor):
        return [SIGN + clause.name]
    return [clause.relation] if isinstance(clause, syntax.Declaration | syntax.Directive) else []
