"""Define Facts: the bounds of a rule's variables, and the variables that are never null.

Facts come from types, the user's assumptions (``assume="w >= 0"``), filters, guards (``Between``), and for recursive
columns from ``invariants``.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from pyspark_paralagg.program.aggregators import is_numeric
from pyspark_paralagg.program.assumption import assumptions_about
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, conjuncts
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.functions.arithmetic import to_number
from pyspark_paralagg.program.functions.casts import is_exact
from pyspark_paralagg.program.functions.value_range import Range, is_float, is_nan, type_range, unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.program.functions.value_range import Number
    from pyspark_paralagg.program.program import Input, Program

Column = tuple[str, str]
"""A relation and the name of its column."""


@dataclass(frozen=True)
class Invariants:
    """The invariants of recursive columns: ``ranges`` of their values, and the columns that are never null."""

    ranges: Mapping[Column, Range] = field(default_factory=dict)
    present: frozenset[Column] = frozenset()


NOT_NEGATIVE = Range(0, math.inf, has_nan=True)
_MIRROR = {
    "LessThan": "GreaterThan",
    "GreaterThan": "LessThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "EqualTo": "EqualTo",
}
# Null or not true if an argument is null: rows that pass such a condition have a value for it.
_REJECTS_NULL = ("Add", "Subtract", "Multiply", "Divide", "Cast", "UnaryMinus", *_MIRROR)


@dataclass(frozen=True)
class Facts:
    """The ranges of variables, the variables that are never null, and the session's settings."""

    ranges: Mapping[str, Range] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    setting: Setting = field(default_factory=Setting)

    def range_of(self, col: Col) -> Range | None:
        """Return the range of a variable; None if its type has none."""
        of_type = type_range(col.type)
        known_range = self.ranges.get(col.name)
        if of_type is None or known_range is None:
            return of_type
        return of_type.intersect(known_range)

    def with_range(self, name: str, range_: Range) -> Facts:
        """Return the facts with one more bound on a variable."""
        known_range = self.ranges.get(name)
        tighter = range_ if known_range is None else known_range.intersect(range_)
        return replace(self, ranges={**self.ranges, name: tighter})

    def assuming(self, condition: Expr) -> Facts:
        """Return the facts for rows that pass ``condition``.

        >>> Facts().assuming(Call("GreaterThan", (Col("n", "int"), Lit(3, "int")), "boolean")).ranges["n"].low
        4
        """
        facts = self
        for c in conjuncts(condition):
            implied = fact(c)
            if implied is not None:
                facts = facts.with_range(*implied)
            facts = replace(facts, present=facts.present | _present(c))
        return facts

    def assuming_not(self, condition: Expr) -> Facts:
        """Return the facts for rows on which ``condition`` is false, or null."""
        flipped = {
            "LessThan": "GreaterThanOrEqual",
            "LessThanOrEqual": "GreaterThan",
            "GreaterThan": "LessThanOrEqual",
            "GreaterThanOrEqual": "LessThan",
        }
        if isinstance(condition, Call) and condition.fn in flipped:
            implied = fact(replace(condition, fn=flipped[condition.fn]))
            return self if implied is None else self.with_range(*implied)
        return self


@functools.lru_cache(maxsize=4096)
def fact(condition: Expr) -> tuple[str, Range] | None:
    """Return the column and range that a comparison with a number implies; None for other conditions."""
    if not isinstance(condition, Call) or condition.fn not in _MIRROR:
        return None
    fn, (left, right) = condition.fn, condition.args
    if isinstance(_uncast(right), Col):
        fn, left, right = _MIRROR[fn], right, left
    column, number = _uncast(left), _number(right)
    if not isinstance(column, Col) or number is None or is_nan(number):
        return None
    # The type of a column in an assumption is not known here.
    if column.type != "any" and type_range(column.type) is None:
        return None
    return column.name, _range_allowed(fn, number, left.type if isinstance(left, Call) else column.type, column.type)


def _range_allowed(fn: str, limit: Number, compared: str, type_: str) -> Range:
    """Return the values of a type that satisfy ``fn`` with ``limit``, compared as type ``compared``."""
    steps = type_ != "any" and not is_float(type_) and not is_float(compared) and is_numeric(type_)
    step = unit(type_) if steps else None

    def beyond(direction: float) -> Number:
        if step is not None:
            # The next value of the type; there is none in between.
            exact = Fraction(limit) / Fraction(step)
            whole = math.floor(exact) + 1 if direction > 0 else math.ceil(exact) - 1
            return whole * step
        return math.nextafter(float(limit), direction) if is_float(type_) and float(limit) == limit else limit

    if fn == "EqualTo":
        return Range(limit, limit)
    if fn == "GreaterThan":
        return Range(beyond(math.inf), math.inf, has_nan=True)
    if fn == "GreaterThanOrEqual":
        return Range(limit, math.inf, has_nan=True)
    if fn == "LessThan":
        return Range(-math.inf, beyond(-math.inf))
    return Range(-math.inf, limit)


def _number(expr: Expr) -> Number | None:
    if isinstance(expr, Call) and expr.fn == "Cast" and isinstance(expr.args[0], Lit):
        inner = _number(expr.args[0])
        return inner if inner is not None and is_exact(expr.args[0].type, expr.type) else None
    return to_number(expr.value, expr.type) if isinstance(expr, Lit) else None


def _uncast(expr: Expr) -> Expr:
    """Return the expression below exact casts; a cast that cuts digits implies less about its argument."""
    while isinstance(expr, Call) and expr.fn == "Cast" and is_exact(expr.args[0].type, expr.type):
        expr = expr.args[0]
    return expr


def _present(condition: Expr) -> frozenset[str]:
    """Return the variables that are not null if ``condition`` holds."""
    if isinstance(condition, Call) and condition.fn in (*_MIRROR, "IsNotNull", "Not"):
        if condition.fn == "Not" and not _rejects_null(condition.args[0]):
            return frozenset()
        return frozenset().union(*(_strict_variables(a) for a in condition.args))
    return frozenset()


def _rejects_null(expr: Expr) -> bool:
    return isinstance(expr, Col) or (isinstance(expr, Call) and expr.fn in _MIRROR)


def _strict_variables(expr: Expr) -> frozenset[str]:
    if isinstance(expr, Col):
        return frozenset((expr.name,))
    if isinstance(expr, Call) and expr.fn in _REJECTS_NULL:
        return frozenset().union(*(_strict_variables(a) for a in expr.args))
    return frozenset()


def input_facts(source: Input, program: Program, invariants: Invariants, *, assumes: bool) -> Facts:
    """Return the facts about an input's columns; with ``assumes`` including the user's assumptions, guarded at load."""
    facts = Facts(setting=program.setting)
    if source.relation is not None:
        recursive_columns = [(c.name, (source.relation, c.name)) for c in source.columns]
        facts = replace(facts, present=frozenset(n for n, key in recursive_columns if key in invariants.present))
        for name, key in recursive_columns:
            if key in invariants.ranges:
                facts = facts.with_range(name, invariants.ranges[key])
    for condition in source.filters:
        facts = facts.assuming(condition)
    if assumes and source.relation is None:
        assumed = assumptions_about(source.name, [c.name for c in source.columns], program.assume)
        for implied in filter(None, map(fact, assumed)):
            facts = facts.with_range(*implied)  # null is no violation
    return facts
