"""Encode expressions as z3 terms: integers as Int, other numbers as Real, booleans as Bool, each with a null flag.

Integers and decimals are exact; overflow wraps, gives null or fails, as the session is set. Floats are points of an
order, with NaN above all others: a function that rounds is uninterpreted, with the directions and bounds of its table
entry. Strings, and functions without a z3 theory, are uninterpreted, too: equal arguments give equal results. That can
lose proofs, but never makes wrong ones. With ``is_exact`` off, floats are fractions that do not round, for proofs up to
rounding. A failing operation ends the query, so claims are about rows where none fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.prove.facts import Facts
from pyspark_paralagg.compile.prove.monotone import range_of
from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, branches, walk
from pyspark_paralagg.program.functions import FUNCTIONS, shape_of
from pyspark_paralagg.program.functions.arithmetic import to_number
from pyspark_paralagg.program.functions.casts import is_exact as is_exact_cast
from pyspark_paralagg.program.functions.value_range import decimal_digits, is_float, type_range, union

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.program.functions.value_range import Range

Z3 = Any
"""A z3 term. The package has no type hints and is imported at first use."""

_MAX_POWER = 8


@dataclass(frozen=True)
class Term:
    """A value and its null flag; the value is undefined if ``null`` is true."""

    value: Z3
    null: Z3


@dataclass
class Encoder:
    """An encoder for one z3 context, whose variables lie in the ranges of ``facts``.

    ``axioms`` collects facts that hold for all variables: no operation fails, and the properties of uninterpreted
    functions. ``guesses`` names these functions, since a model may invent their values.
    """

    z3: Z3
    ctx: Z3
    facts: Facts = field(default_factory=Facts)
    is_exact: bool = True
    axioms: list[Z3] = field(default_factory=list)
    guesses: list[str] = field(default_factory=list)
    _path: list[Z3] = field(default_factory=list)
    _applied: dict[str, list[tuple[list[Term], Z3, tuple[Range | None, ...]]]] = field(default_factory=dict)
    _points: dict[tuple[str, str], Z3] = field(default_factory=dict)

    def variable(self, name: str, type_: str, *, nullable: bool) -> Term:
        """Return a fresh constant of a column's type."""
        value = self.z3.Const(name, self.sort(type_))
        return Term(value, self.z3.Bool(f"{name} is null", self.ctx) if nullable else self.truth(value=False))

    def sort(self, type_: str) -> Z3:
        """Return the sort of a type: Bool, Int, or Real, which also orders the points of all other types."""
        if type_ == "boolean":
            return self.z3.BoolSort(self.ctx)
        return self.z3.IntSort(self.ctx) if is_integral(type_) else self.z3.RealSort(self.ctx)

    def within(self, term: Term, range_: Range) -> list[Z3]:
        """Return that a non-null number lies in ``range_``; NaN lies above every upper bound."""
        bounds = []
        for bound, is_low in ((range_.low, True), (range_.high, False)):
            if -math.inf < bound < math.inf and (is_low or not range_.has_nan):
                limit = self._number(bound, term.value)
                bounds.append(self.z3.Or(term.null, limit <= term.value if is_low else term.value <= limit))
        return bounds

    def _number(self, value: Any, like: Z3) -> Z3:  # noqa: ANN401 - a number of any type
        if self.z3.is_int(like):
            return self.z3.IntVal(int(value), self.ctx)
        return self.z3.RealVal(str(Fraction(value)), self.ctx)

    def truth(self, *, value: bool) -> Z3:
        """Return the boolean constant ``value``."""
        return self.z3.BoolVal(value, self.ctx)

    def less(self, a: Z3, b: Z3, *, or_equal: bool = True) -> Z3:
        """Return ``a <= b``, or ``a < b``; false is less than true."""
        if self.z3.is_bool(a):
            return self.z3.Or(self.z3.Not(a), b) if or_equal else self.z3.And(self.z3.Not(a), b)
        return a <= b if or_equal else a < b

    def encode(self, expr: Expr, env: Mapping[str, Term]) -> Term:
        """Encode ``expr`` with the variables of ``env``."""
        if isinstance(expr, Col):
            return env[expr.name]
        if isinstance(expr, Lit):
            return self._literal(expr)
        match expr.fn:
            case "If" | "CaseWhen":
                return self._choice(expr, env)
            case "And" | "Or":
                return self._logic(expr, env)
            case "Coalesce":
                return self._coalesce(expr, env)
        args = [self.encode(a, env) for a in expr.args]
        return self._null_aware(expr, args) or self._strict(expr, args)

    def _literal(self, lit: Lit) -> Term:
        if lit.value is None:
            return Term(self.z3.Const("nothing", self.sort(lit.type)), self.truth(value=True))
        if isinstance(lit.value, bool):
            value = self.truth(value=lit.value)
        elif is_integral(lit.type) and isinstance(lit.value, int):
            value = self.z3.IntVal(lit.value, self.ctx)
        elif is_numeric(lit.type) and abs(float(lit.value)) < float("inf"):
            # With exact fractions as written: 0.1 is a tenth, not the nearest double.
            number = to_number(lit.value, lit.type) if self.is_exact else None
            value = self.z3.RealVal(str(Fraction(str(lit.value)) if number is None else Fraction(number)), self.ctx)
        else:
            value = self._point(str(lit.value), lit.type)
        return Term(value, self.truth(value=False))

    def _point(self, text: str, type_: str) -> Z3:
        if (type_, text) not in self._points:
            point = self.z3.Const(f"{type_} {text!r}", self.sort(type_))
            for (other_type, other), other_point in self._points.items():
                if type_ == other_type == "string":  # Spark orders strings by their bytes
                    self.axioms.append(other_point < point if other.encode() < text.encode() else point < other_point)
            self._points[type_, text] = point
        return self._points[type_, text]

    def _choice(self, expr: Call, env: Mapping[str, Term]) -> Term:
        conditions, values = branches(expr)
        depth = len(self._path)
        branch_terms: list[tuple[Z3, Term]] = []
        for condition in conditions:
            term = self.encode(condition, env)
            holds = self.z3.And(term.value, self.z3.Not(term.null))
            self._path.append(holds)
            branch_terms.append((holds, self._as(self.encode(values[len(branch_terms)], env), expr.type)))
            self._path[-1] = self.z3.Not(holds)
        if len(values) > len(conditions):
            result = self._as(self.encode(values[-1], env), expr.type)
        else:
            result = self._literal(Lit(None, expr.type))
        del self._path[depth:]
        for holds, term in reversed(branch_terms):
            result = Term(self.z3.If(holds, term.value, result.value), self.z3.If(holds, term.null, result.null))
        return result

    def _logic(self, expr: Call, env: Mapping[str, Term]) -> Term:
        z3, (a, b) = self.z3, expr.args
        left = self.encode(a, env)
        decided = z3.And(z3.Not(left.null), left.value if expr.fn == "Or" else z3.Not(left.value))
        self._path.append(z3.Not(decided))
        right = self.encode(b, env)
        self._path.pop()
        # Or is true if one side is; And is false if one side is; null if a null decides.
        sides = [z3.And(z3.Not(t.null), t.value if expr.fn == "Or" else z3.Not(t.value)) for t in (left, right)]
        decides = z3.Or(*sides)
        return Term(
            decides if expr.fn == "Or" else z3.Not(decides), z3.And(z3.Not(decides), z3.Or(left.null, right.null))
        )

    def _coalesce(self, expr: Call, env: Mapping[str, Term]) -> Term:
        depth = len(self._path)
        terms: list[Term] = []
        for arg in expr.args:
            terms.append(self._as(self.encode(arg, env), expr.type))
            self._path.append(terms[-1].null)
        del self._path[depth:]
        result = terms[-1]
        for term in reversed(terms[:-1]):
            result = Term(self.z3.If(term.null, result.value, term.value), self.z3.And(term.null, result.null))
        return result

    def _null_aware(self, expr: Call, args: list[Term]) -> Term | None:
        z3, never = self.z3, self.truth(value=False)
        match expr.fn:
            case "Present":
                self.axioms.append(z3.Not(args[0].null))
                return args[0]
            case "IsNull":
                return Term(args[0].null, never)
            case "IsNotNull":
                return Term(z3.Not(args[0].null), never)
            case "EqualNullSafe":
                a, b = self._alike(*args)
                are_equal = z3.And(z3.Not(a.null), z3.Not(b.null), a.value == b.value)
                return Term(z3.Or(are_equal, z3.And(a.null, b.null)), never)
            case "Least" | "Greatest":
                args = [self._as(a, expr.type) for a in args]
                result = args[0]
                for a in args[1:]:
                    wins = self.less(a.value, result.value) if expr.fn == "Least" else self.less(result.value, a.value)
                    takes = z3.Or(result.null, z3.And(z3.Not(a.null), wins))
                    result = Term(z3.If(takes, a.value, result.value), z3.And(result.null, a.null))
                return result
        return None

    def _strict(self, expr: Call, args: list[Term]) -> Term:
        null = self.z3.Or(*(a.null for a in args)) if args else self.truth(value=False)
        value = self._comparison(expr, args)
        if value is not None:
            return Term(value, null)
        return self._arithmetic(expr, args, null) or self._uninterpreted(expr, args)

    def _arithmetic(self, expr: Call, args: list[Term], null: Z3) -> Term | None:
        if expr.fn == "Cast":
            value = self._cast(expr, args[0])
        elif expr.fn == "Between":
            bounds = range_of(expr, self.facts)
            self.axioms += [] if bounds is None else self.within(args[0], bounds)
            return args[0]
        elif not is_numeric(expr.type) or not self._is_exact(expr):
            return None
        elif expr.fn in ("Divide", "IntegralDivide", "Remainder"):
            return self._quotient(expr, args, null)
        else:
            value = self._algebra(expr, [self._as(x, expr.type).value for x in args])
        return None if value is None else self._fitted(expr, value, null)

    def _is_exact(self, expr: Call) -> bool:
        """Return whether the result is not rounded, or rounding is ignored."""
        if not self.is_exact:
            # A product or quotient of decimals is rounded to the digits of its type.
            return not (expr.type.startswith("decimal") and expr.fn in ("Multiply", "Divide"))
        if is_float(expr.type) or any(is_float(a.type) for a in expr.args):
            return False
        digits = decimal_digits(expr.type)
        scales = [d[1] for a in expr.args if (d := decimal_digits(a.type))]
        needed = sum(scales) if expr.fn == "Multiply" else max(scales, default=0)
        return expr.fn != "Divide" and (digits is None or digits[1] >= needed)

    def _algebra(self, expr: Call, values: list[Z3]) -> Z3 | None:
        function = FUNCTIONS.get(expr.fn)
        if function is not None and function.is_algebraic and function.compute is not None:
            return function.compute(*values)
        if expr.fn == "Abs":
            return self.z3.If(values[0] >= 0, values[0], -values[0])
        if expr.fn == "Pow" and isinstance(power := expr.args[1], Lit) and power.value in range(1, _MAX_POWER + 1):
            product = values[0]
            for _ in range(int(power.value or 1) - 1):
                product = product * values[0]
            return product
        return None

    def _fitted(self, expr: Call, value: Z3, null: Z3) -> Term:
        """Encode overflow: it fails; without ANSI rules an integer wraps and a decimal is null."""
        of_type = type_range(expr.type)
        if of_type is None or is_float(expr.type) or not is_numeric(expr.type):
            return Term(value, null)
        low, high = self._number(of_type.low, value), self._number(of_type.high, value)
        fits = self.z3.And(low <= value, value <= high)
        if self.facts.setting.ansi:
            return Term(value, null)  # overflow fails; omitting that is sound, and easier to decide
        if not is_integral(expr.type):
            return Term(value, self.z3.Or(null, self.z3.Not(fits)))
        size = self._number(of_type.high - of_type.low + 1, value)
        return Term(self.z3.If(fits, value, (value - low) % size + low), null)

    def _quotient(self, expr: Call, args: list[Term], null: Z3) -> Term | None:
        z3 = self.z3
        a, b = (self._as(x, expr.type).value for x in args)
        is_zero = b == 0
        if expr.fn == "Divide":
            if is_integral(expr.type):
                return None
            value = a / b
        elif not all(is_integral(e.type) for e in (expr, *expr.args)) or _divides(expr.args[1]):
            return None  # z3 is slow on nested divisions
        else:
            size = z3.If(b >= 0, b, -b)
            times = z3.If(a >= 0, a / size, -(-a / size))  # the quotient by |b|, rounded towards zero
            value = a - size * times if expr.fn == "Remainder" else z3.If(b >= 0, times, -times)
        if self.facts.setting.ansi:
            self._never_fails(z3.Not(is_zero), null)
            return Term(value, null)
        return self._fitted(expr, value, z3.Or(null, is_zero))

    def _comparison(self, expr: Call, args: list[Term]) -> Z3 | None:
        if expr.fn == "Not":
            return self.z3.Not(args[0].value)
        if expr.type != "boolean" or len(args) != 2 or not all(_is_comparable(a.type) for a in expr.args):  # noqa: PLR2004 - both sides
            return None
        left, right = self._alike(*args)
        a, b = left.value, right.value
        match expr.fn:
            case "EqualTo":
                return a == b
            case "LessThan" | "LessThanOrEqual":
                return self.less(a, b, or_equal=expr.fn.endswith("Equal"))
            case "GreaterThan" | "GreaterThanOrEqual":
                return self.less(b, a, or_equal=expr.fn.endswith("Equal"))
            case _:
                return None

    def _cast(self, expr: Call, arg: Term) -> Z3 | None:
        source, target = expr.args[0].type, expr.type
        if source == target:
            return arg.value
        if not is_numeric(source) or not is_numeric(target):
            return None
        is_decimal = decimal_digits(target) is not None
        if not self.is_exact:
            if is_integral(target) and not is_integral(source):
                whole = self.z3.ToInt
                return self.z3.If(arg.value >= 0, whole(arg.value), -whole(-arg.value))
            # Arithmetic of doubles rounds as well, but no number in the loop has fewer digits than they.
            is_kept = is_exact_cast(source, target) or (is_integral(source) and (target == "double" or is_decimal))
            return self._as(arg, target).value if is_kept else None
        # A narrower integer, or fewer digits before the point, holds the number exactly or overflows.
        is_kept = is_integral(source) and not is_float(target)
        return self._as(arg, target).value if is_kept or is_exact_cast(source, target) else None

    def _uninterpreted(self, expr: Call, args: list[Term]) -> Term:
        """Encode an uninterpreted function with the directions and bounds of its table entry."""
        z3 = self.z3
        # Other literals make another function, since table entries depend on them.
        arguments = [f"{a.value!r} {a.type}" if isinstance(a, Lit) else a.type for a in expr.args]
        name = f"{expr.fn} {expr.variant} {arguments} {expr.type}"
        self.guesses.append(expr.fn)
        inputs = [x for a in args for x in (a.value, a.null)]
        result = z3.Function(name, *(x.sort() for x in inputs), self.sort(expr.type))(*inputs)
        null = z3.Or(*(a.null for a in args)) if args else self.truth(value=False)
        ranges = tuple(range_of(a, self.facts) for a in expr.args)
        shape = shape_of(expr, ranges, self.facts.setting)
        if not expr.nullable:  # such as hash, which is not null even of a null
            null = self.truth(value=False)
        elif any(w != "never" for w in shape.nulls):
            null = z3.Function(f"{name} is null", *(x.sort() for x in inputs), z3.BoolSort(self.ctx))(*inputs)
        if type_range(expr.type) is not None and not shape.wraps:
            result_range = shape.range
            self.axioms += [] if result_range is None else self.within(Term(result, null), result_range)
            for others, other, other_ranges in self._applied.get(name, []):
                # How they lie to each other is for a shape to say that holds of the arguments of both.
                joint_shape = shape_of(expr, tuple(map(union, ranges, other_ranges)), self.facts.setting)
                if not joint_shape.wraps:
                    self._order(args, result, others, other, joint_shape.directions)
            self._applied.setdefault(name, []).append((args, result, ranges))
        return Term(result, null)

    def _order(self, xs: list[Term], x: Z3, ys: list[Term], y: Z3, directions: tuple[str, ...]) -> None:
        """Add axioms that order two results of a function like their arguments, where it is monotone."""
        z3 = self.z3
        present = [z3.Not(t.null) for t in (*xs, *ys)]
        for left, right, low, high in ((xs, ys, x, y), (ys, xs, y, x)):
            ordered = []
            for a, b, direction in zip(left, right, directions, strict=True):
                way = {"up": a.value <= b.value, "down": b.value <= a.value} if not z3.is_bool(a.value) else {}
                ordered.append(
                    self.truth(value=True) if direction == "none" else way.get(direction, a.value == b.value)
                )
            self.axioms.append(z3.Implies(z3.And(*present, *ordered), low <= high))

    def _never_fails(self, condition: Z3, null: Z3) -> None:
        self.axioms.append(self.z3.Implies(self.z3.And(*self._path, self.z3.Not(null)), condition))

    def _as(self, term: Term, type_: str) -> Term:
        if self.z3.is_int(term.value) and self.sort(type_) == self.z3.RealSort(self.ctx):
            return Term(self.z3.ToReal(term.value), term.null)
        return term

    def _alike(self, a: Term, b: Term) -> tuple[Term, Term]:
        return (
            (self._as(a, "double"), b)
            if self.z3.is_real(b.value)
            else (a, self._as(b, "double"))
            if self.z3.is_real(a.value)
            else (a, b)
        )


def _divides(expr: Expr) -> bool:
    return any(isinstance(e, Call) and e.fn in ("Divide", "IntegralDivide", "Remainder", "Pmod") for e in walk(expr))


def _is_comparable(type_: str) -> bool:
    return type_ == "boolean" or is_numeric(type_) or type_ in ("string", "date", "timestamp", "timestamp_ntz")
