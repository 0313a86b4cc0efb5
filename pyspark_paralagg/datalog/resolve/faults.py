"""All that is wrong with a text: the clause with a problem is taken out, and what is left is resolved again.

What is wrong only because a clause is missing then is not told: a relation that it declares or derives is known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.parse import MAX_PROBLEMS
from pyspark_paralagg.datalog.resolve.expand import nodes
from pyspark_paralagg.errors import ParalaggError, together

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

_FOLLOWING = ("PARALAGG_UNKNOWN_RELATION", "PARALAGG_DATALOG_INPUT", "PARALAGG_NO_OUTPUT")
_OF_DECLARATIONS = ("PARALAGG_DATALOG_TYPE", "PARALAGG_DATALOG_ARITY", "PARALAGG_BAD_FACT", "PARALAGG_BAD_OPTION")


def with_all_problems(text: syntax.Text, use: Callable[[syntax.Text], Result]) -> Result:
    """What ``use`` gives for ``text``; raises all that it raises for the text and for what is left of it, as one."""
    problems: list[ParalaggError] = []
    removed: list[syntax.Clause] = []
    left = text
    while len(problems) < MAX_PROBLEMS:
        try:
            result = use(left)
        except ParalaggError as problem:  # noqa: PERF203 - a problem is the end of a round
            clause = _clause_of(problem, left)
            if not _follows(problem, clause, removed):
                problems.append(problem)
            if clause is None:
                break
            removed.append(clause)
            left = replace(left, clauses=tuple(c for c in left.clauses if c is not clause))
        else:
            if not problems:
                return result
            break
    raise together(problems) from None


def _clause_of(problem: ParalaggError, text: syntax.Text) -> syntax.Clause | None:
    """The last clause that begins at or before the problem; of ``.output a, b`` the one that is about its relation."""
    if problem.position is None:
        return None
    before = [c for c in text.clauses if (c.span.line, c.span.column) <= problem.position]

    def nearness(c: syntax.Clause) -> tuple[int, int, bool]:
        return c.span.line, c.span.column, getattr(c, "relation", None) == problem.value

    return max(before, key=nearness, default=None)


def _follows(problem: ParalaggError, clause: syntax.Clause | None, removed: list[syntax.Clause]) -> bool:
    """Whether ``problem`` is there because ``removed`` clauses are not."""
    if problem.position is None:  # about an input that nothing reads any more
        return bool(removed)
    made = {name for c in removed for name in _made_by(c)}
    declared = {c.relation for c in removed if isinstance(c, syntax.Declaration)}
    if problem.code in _FOLLOWING and problem.value in made:
        return True
    if problem.code == "PARALAGG_DATALOG_TYPE" and any(isinstance(c, syntax.TypeAlias) for c in removed):
        return True
    if problem.code == "PARALAGG_DATALOG_TYPE" and "cannot be told" in problem.message:
        return bool(removed)
    named = {getattr(n, "relation", None) for n in nodes(clause)}
    return problem.code in _OF_DECLARATIONS and not named.isdisjoint(declared)


def _made_by(clause: syntax.Clause) -> list[str]:
    if isinstance(clause, syntax.Rule):
        return [h.relation for h in clause.heads]
    return [clause.relation] if isinstance(clause, syntax.Declaration | syntax.Directive) else []
