"""Gives a limit to recursions that may make new keys for ever, and warns.

    level(y, n + 1) :- level(x, n), edges(x, y)           no end on a cycle: at most 10,000 iterations
    level(y, n + 1) :- level(x, n), edges(x, y), n < 9    bounded by the filter
    count(n + 1, end) :- count(n, end), n < end           bounded by a key that stays as it is
    total(x + z) :- pairs(x, y), pairs(y, z)              no recursion: there are as many as there are pairs

Values are taken care of elsewhere: a lattice ends by itself, or its endless climb is found. Keys are not: a key that
is computed from the recursion's own keys can be a new one each time. A filter on what it is made of, or a limit of
the user's own, says that somebody has thought of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.scope import variables
from pyspark_paralagg.compile.rewrite.stratify import needs_of, strongly_connected
from pyspark_paralagg.program.expr import Call, Col, columns, walk
from pyspark_paralagg.program.program import Limit
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Program, Rule

MOST_ITERATIONS = 10_000
"""What a recursion without a bound of its own may take."""

_GROWING = ("Add", "Subtract", "Multiply", "Concat", "ShiftLeft", "Pow", "Exp")
_COMPARISONS = ("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "EqualTo", "EqualNullSafe", "In")


def limit_growth(program: Program) -> Program:
    """The program with a limit for each stratum whose keys may grow for ever, and a warning for each such relation."""
    limits, warnings = list(program.limits), list(program.warnings)
    # Not the strata: those have relations that only drive a rule, too.
    needs_each_other = {name: names for names in strongly_connected(needs_of(program)) for name in names}
    for names in program.strata:
        if program.limit(names) != (None, "error", None):
            continue
        for relation in names:
            rules = (r for r in program.rules if r.head == relation)
            grown = next(
                (g for r in rules if (g := _growing_key(r, needs_each_other[relation], program)) is not None), None
            )
            if grown is None:
                continue
            rule, name, expr = grown
            warnings.append(
                f"{rule.head}: the key {name} = {show(expr)} (in {rule.place}) is bounded by nothing, so new rows may "
                f"come for ever: stopped with an error after {MOST_ITERATIONS:,} iterations"
            )
            if all(limit.relation not in names for limit in limits):
                limits.append(Limit(names[0], MOST_ITERATIONS, on_limit="error"))
    return replace(program, limits=tuple(limits), warnings=tuple(warnings))


def _growing_key(rule: Rule, names: Collection[str], program: Program) -> tuple[Rule, str, Expr] | None:
    """A key of the rule's head that grows with keys of ``names``, which need each other."""
    scope = variables(rule, program)
    head = program.relation(rule.head)
    for column, expr in zip(head.keys, rule.exprs, strict=False):
        for call in (e for e in walk(expr) if isinstance(e, Call) and e.fn in _GROWING):
            recursive = [v for v in columns(call) if scope[v].relation in names]
            fixed = {v for v, of in scope.items() if of.relation not in names} | _carried(rule, len(head.keys))
            if recursive and not _is_bounded(set(recursive), rule, fixed):
                return rule, column.name, expr
    return None


def _is_bounded(names: set[str], rule: Rule, fixed: set[str]) -> bool:
    """Whether some condition holds what the key is made of against a bound: an input's column, or a key that stays."""
    for condition in rule.conditions:
        for call in (e for e in walk(condition) if isinstance(e, Call) and e.fn in _COMPARISONS):
            sides = [columns(a) for a in call.args]
            others = frozenset().union(*(s for s in sides if not s & names))
            if any(s & names for s in sides) and others <= fixed:
                return True
    return False


def _carried(rule: Rule, keys: int) -> set[str]:
    """Keys that the rule hands on unchanged, at their own places."""
    own = (a.variables[:keys] for a in rule.body if a.relation == rule.head)
    return {v for names in own for v, e in zip(names, rule.exprs, strict=False) if isinstance(e, Col) and e.name == v}
