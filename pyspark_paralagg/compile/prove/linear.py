"""Decide whether an expression is homogeneous linear in the sums: the rule system for the class *accumulating*.

(Wang et al., PowerLog, theorem 1, for sum and count.) If a rule reads one recursive atom and its value is a sum of that
atom's values times factors, applying it to a difference gives the difference. ``rank * 0.85 / degree`` is linear;
``n + 1``, ``n * n`` and ``1`` are not: for them the step of a sum is not the sum of the steps.

``rounded`` is linear but for a rounding: ``cast(need * quantity AS decimal(18,4))``. The roundings of two parts are not
the rounding of their sum, so such a step runs on whole values. Arithmetic of doubles counts as exact: a sum of doubles
rounds as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, branches, columns
from pyspark_paralagg.program.functions.arithmetic import keeps_scale
from pyspark_paralagg.program.functions.casts import is_exact
from pyspark_paralagg.program.functions.function import DEFAULT_SETTING, Setting
from pyspark_paralagg.program.functions.value_range import MAX_DIGITS, decimal_digits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

Degree = Literal["zero", "const", "linear", "rounded", "no"]
_ROUNDING = ("Round", "BRound", "RoundFloor", "RoundCeil", "Floor", "Ceil")


def degree(
    expr: Expr,
    accumulating: AbstractSet[str],
    nullable: AbstractSet[str] = frozenset(),
    setting: Setting = DEFAULT_SETTING,
) -> Degree:
    """Return ``linear`` if ``expr`` is a sum of multiples of variables in ``accumulating``, ``const`` if it reads none.

    ``rounded``: linear but for a rounding. ``nullable`` are those of ``accumulating`` that may be null. One of them
    takes another term of a sum with it: if n arrives with a null m, ``m + n`` adds nothing, although both may have
    values in the end.

    >>> degree(Call("Multiply", (Col("n", "bigint"), Col("k", "bigint")), "bigint"), {"n"})
    'linear'
    >>> degree(Call("Cast", (Col("n", "bigint"),), "float"), {"n"})
    'rounded'
    """
    return _Degrees(accumulating, nullable, setting).of(expr)


class _Degrees:
    def __init__(self, accumulating: AbstractSet[str], nullable: AbstractSet[str], setting: Setting) -> None:
        self._accumulating, self._nullable, self._setting = accumulating, nullable, setting

    def of(self, expr: Expr) -> Degree:
        if isinstance(expr, Lit):
            return "zero" if expr.value is None or expr.value == 0 else "const"
        if isinstance(expr, Col):
            return "linear" if expr.name in self._accumulating else "const"
        if not self._reads_sums(expr):
            return "zero" if expr.fn == "Cast" and self.of(expr.args[0]) == "zero" else "const"
        return self._call(expr)

    def _reads_sums(self, expr: Expr) -> bool:
        return bool(columns(expr) & self._accumulating)

    def _call(self, expr: Call) -> Degree:  # noqa: PLR0911 - one rule of the system a line
        if expr.fn in ("If", "CaseWhen"):
            conditions, values = branches(expr)
            return "no" if any(map(self._reads_sums, conditions)) else _all(map(self.of, values))
        first, *others = parts = [self.of(a) for a in expr.args]
        match expr.fn:
            case "Add" | "Subtract":
                nulls = [self._nulls(a) for a in expr.args if self._reads_sums(a)]
                return self._result(expr, _all(parts)) if all(n == nulls[0] for n in nulls) else "no"
            case "Multiply":
                factors = sorted(parts, key=lambda p: p in ("linear", "rounded"))
                return self._result(expr, factors[1]) if factors[0] in ("const", "zero") else "no"
            case "Divide":
                return self._result(expr, first) if others == ["const"] else "no"
            case "UnaryMinus" | "UnaryPositive":
                return first
            case "Cast":
                return self._cast(expr, first)
            case "Coalesce":
                # Null adds nothing, as zero does.
                return first if set(others) <= {"zero"} else "no"
            case fn if fn in _ROUNDING and set(others) <= {"const", "zero"}:
                return _all([first, "rounded"])
            case _:
                return "no"

    def _result(self, expr: Call, exact: Degree) -> Degree:
        """Return the degree of arithmetic whose exact result has the degree ``exact``: decimals may lose digits."""
        digits = decimal_digits(expr.type)
        if digits is None:
            return exact
        may_be_null = digits[0] == MAX_DIGITS and not self._setting.ansi
        return exact if keeps_scale(expr) and expr.fn != "Divide" and not may_be_null else _all([exact, "rounded"])

    def _cast(self, expr: Call, argument: Degree) -> Degree:
        source, target = expr.args[0].type, expr.type
        old, new = decimal_digits(source), decimal_digits(target)
        # Digits before the point are kept, or the cast fails: only without ANSI mode it gives null.
        keeps_digits = new is not None and self._setting.ansi and (is_integral(source) or (old or new)[1] <= new[1])
        if is_exact(source, target) or (keeps_digits and (old is not None or is_integral(source))):
            return argument
        is_narrower_integer = is_integral(source) and is_integral(target)
        rounds = is_numeric(source) and is_numeric(target) and not is_narrower_integer
        return _all([argument, "rounded"]) if rounds else "no"

    def _nulls(self, expr: Expr) -> frozenset[str]:
        """Return the variables that make the linear ``expr`` null."""
        if isinstance(expr, Call):
            args = () if expr.fn == "Coalesce" else expr.args
            return frozenset[str]().union(*map(self._nulls, args))
        return frozenset({expr.name} & self._nullable) if isinstance(expr, Col) else frozenset()


def _all(parts: Iterable[Degree]) -> Degree:
    """Return the degree of a sum of terms."""
    degrees = set(parts) - {"zero"}
    if not degrees <= {"linear", "rounded"}:
        return "no"
    return "rounded" if "rounded" in degrees else "linear"
