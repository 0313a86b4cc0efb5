"""Limit the iterations of recursions that may derive new keys without end, and warn.

    level(y, n + 1) :- level(x, n), edges(x, y)           endless on a cycle: at most 10,000 iterations
    level(y, n + 1) :- level(x, n), edges(x, y), n < 9    bounded by the filter
    count(n + 1, end) :- count(n, end), n < end           bounded by a key that does not change
    total(x + z) :- pairs(x, y), pairs(y, z)              no recursion: at most one row for each pair of rows
    name(@f(x)) :- name(x)                                endless for some functors of the user

    score(least(5, s + 1)) :- score(s), s > 0             bounded by its range
    score(c, n + 1, s + d) :- score(n, s), chain(n + 1, c, d)     bounded by a key that moves along an input

Values need no limit: a lattice reaches a fixpoint, or the engine detects its endless climb. Keys do: a key computed
from the recursion's own keys can be new in each iteration. A filter on the columns that it is computed from, or a limit
that the user sets, bounds it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.finite_keys import has_few_values, is_finite_by_input
from pyspark_paralagg.compile.rewrite.scope import variables
from pyspark_paralagg.compile.rewrite.stratify import needs_of, strongly_connected
from pyspark_paralagg.program.expr import Call, Col, columns, walk
from pyspark_paralagg.program.functor import is_functor
from pyspark_paralagg.program.names import stem_of
from pyspark_paralagg.program.program import Limit
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Program, Rule

MAX_ITERATIONS = 10_000
"""The limit for a recursion whose keys have no bound."""

_GROWING = ("Add", "Subtract", "Multiply", "Concat", "ShiftLeft", "Pow", "Exp")
_COMPARISONS = ("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "EqualTo", "EqualNullSafe", "In")


def limit_growth(program: Program) -> Program:
    """Return the program with a limit for each stratum whose keys may grow without end, and add warnings."""
    limits, warnings = list(program.limits), list(program.warnings)
    # Not the strata: they also contain relations that only drive a rule.
    recursive_with = {name: names for names in strongly_connected(needs_of(program)) for name in names}
    for names in program.strata:
        if program.limit(names) != (None, "error", None) or program.row_limit(names) is not None:
            continue
        for relation in names:
            if is_finite_by_input(relation, recursive_with[relation], program):
                continue
            rules = (r for r in program.rules if r.head == relation)
            growing = next(
                (g for r in rules if (g := _growing_key(r, recursive_with[relation], program)) is not None), None
            )
            if growing is None:
                continue
            rule, name, expr = growing
            warnings.append(
                f"{stem_of(rule.head)}: the key {name} = {show(expr)} (in {rule.place}) has no bound, so new rows may "
                f"be derived for ever: the run fails after {MAX_ITERATIONS:,} iterations"
            )
            if all(limit.relation not in names for limit in limits):
                limits.append(Limit(names[0], MAX_ITERATIONS, on_limit="error"))
    return replace(program, limits=tuple(limits), warnings=tuple(dict.fromkeys(warnings)))


def _growing_key(rule: Rule, names: Collection[str], program: Program) -> tuple[Rule, str, Expr] | None:
    """Return a key of the rule's head that grows with keys of ``names``, which are mutually recursive; None if none."""
    scope = variables(rule, program)
    head = program.relation(rule.head)
    for column, expr in zip(head.keys, rule.exprs, strict=False):
        for call in (e for e in walk(expr) if isinstance(e, Call) and (e.fn in _GROWING or is_functor(e.fn))):
            recursive = [v for v in columns(call) if scope[v].relation in names]
            fixed = {name for name, v in scope.items() if v.relation not in names} | _carried(rule, len(head.keys))
            is_bounded = _is_bounded(set(recursive), rule, fixed) or has_few_values((expr, call), rule, program)
            if recursive and not is_bounded:
                return rule, column.name, expr
    return None


def _is_bounded(names: set[str], rule: Rule, fixed: set[str]) -> bool:
    """Return whether a condition compares ``names`` with a bound: an input's column, or a key that does not change."""
    for condition in rule.conditions:
        for call in (e for e in walk(condition) if isinstance(e, Call) and e.fn in _COMPARISONS):
            sides = [columns(a) for a in call.args]
            others = frozenset().union(*(s for s in sides if not s & names))
            if any(s & names for s in sides) and others <= fixed:
                return True
    return False


def _carried(rule: Rule, keys: int) -> set[str]:
    """Return the keys that the rule copies unchanged to the same position."""
    atoms = (a.variables[:keys] for a in rule.body if a.relation == rule.head)
    return {v for names in atoms for v, e in zip(names, rule.exprs, strict=False) if isinstance(e, Col) and e.name == v}
