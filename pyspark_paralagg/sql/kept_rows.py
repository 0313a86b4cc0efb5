"""Find the aggregate of columns that a ``USING KEY`` clause omits, where the branches show it.

DuckDB replaces the row of a key by the last one that is derived. If every branch that reads the recursion compares its
value with that of the same key, and derives only lesser ones, the last row is the least one:

    r(n, d) USING KEY (n):   SELECT e.dst, r.d + e.w FROM r JOIN e ON … JOIN recurring.r old ON old.n = e.dst
                             WHERE r.d + e.w < old.d                  d is min(d): no greater row replaces a lesser one

Then the comparison is not needed, and without it the branch is monotone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.rewrite.equal import Classes
from pyspark_paralagg.compile.rewrite.scope import variables
from pyspark_paralagg.program.aggregators import MaxBy, MinBy
from pyspark_paralagg.program.branch import strip_handles
from pyspark_paralagg.program.expr import Call, Col, conjuncts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Atom, Program, Relation, Rule

_LAST = "last"
_WAYS: tuple[tuple[type[MinBy | MaxBy], str], ...] = ((MinBy, "LessThan"), (MaxBy, "GreaterThan"))


class NotComparedError(Exception):
    """A branch may replace the row of a key by one that is not better: ``column`` of ``relation`` has no aggregate."""

    def __init__(self, relation: str, column: str) -> None:
        super().__init__(relation, column)
        self.relation = relation
        self.column = column


def omitted(declaration: dict[str, Any]) -> list[str]:
    """Return the columns of a relation that its clause omits."""
    calls = {column: call for column, call in declaration["aggs"].items() if call.get("using_key")}
    return [column for column, call in calls.items() if call["function"] == _LAST]


def ways(declarations: Sequence[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], Compared]]:
    """Yield the relations with each choice of aggregates for omitted columns, and the check of that choice."""
    for choice in product(*(_ways_of(d) for d in declarations)):
        yield [d for d, _ in choice], Compared(tuple(order for _, order in choice if order is not None))


def _ways_of(declaration: dict[str, Any]) -> Iterator[tuple[dict[str, Any], tuple[str, str, str] | None]]:
    columns = omitted(declaration)
    if not columns:
        yield declaration, None
    for order, (by, comparison) in product(columns, _WAYS):
        carried = {c: {"function": by.aggregator, "argument": order, "using_key": True} for c in columns if c != order}
        aggs = {**declaration["aggs"], **carried, order: {"function": by.order_aggregator, "using_key": True}}
        yield {**declaration, "aggs": aggs}, (declaration["name"], order, comparison)


@dataclass(frozen=True)
class Compared:
    """The relations, columns and comparisons by which branches must show that they derive only better rows."""

    orders: tuple[tuple[str, str, str], ...]

    def rewrite(self, program: Program) -> Program:
        """Return ``program`` without these comparisons; raises ``NotComparedError`` if a rule has none."""
        for name, column, comparison in self.orders:
            rules = (_without(r, program, column, comparison) if r.head == name else r for r in program.rules)
            program = replace(program, rules=tuple(rules))
        return program


def _without(rule: Rule, program: Program, column: str, comparison: str) -> Rule:
    relation = program.relation(rule.head)
    scope = variables(rule, program)
    classes = Classes.from_conditions(rule.conditions, lambda _: True)
    value = strip_handles(rule.exprs[[c.name for c in relation.supplied].index(column)])
    conditions = [c for condition in rule.conditions for c in conjuncts(condition)]
    for condition in conditions:
        new, old = _sides(condition, comparison)
        if new != value or not isinstance(old, Col):
            continue
        found = scope[old.name]
        is_own = found.relation == relation.name and found.column.name == column
        if is_own and _has_keys(rule.body[found.atom], relation, rule, classes):
            # No comparison with null is true, so a null is never replaced.
            known = Call("IsNotNull", (old,), "boolean", nullable=False)
            return replace(rule, conditions=(*(c for c in conditions if c is not condition), known))
    raise NotComparedError(relation.name, column)


def _sides(condition: Expr, comparison: str) -> tuple[Expr | None, Expr | None]:
    """Return the better and the other side of a strict comparison; nothing for another condition."""
    if not isinstance(condition, Call) or condition.fn not in ("LessThan", "GreaterThan"):
        return None, None
    left, right = condition.args if condition.fn == comparison else condition.args[::-1]
    return strip_handles(left), right


def _has_keys(atom: Atom, relation: Relation, rule: Rule, classes: Classes) -> bool:
    """Return whether ``atom`` is the row of the key that ``rule`` derives."""
    pairs = zip(rule.exprs[: len(relation.keys)], atom.variables, strict=False)
    return all(isinstance(e, Col) and v is not None and classes.are_equal(e.name, v) for e, v in pairs)
