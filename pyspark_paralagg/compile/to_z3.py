"""Expressions as z3 terms: integers as Int, other numbers as Real, booleans as Bool, each with a flag for null.

What z3 has no theory for (a function it does not know, text, dates) stands for itself: an unknown function gives equal
results for equal arguments, text and dates are points of an order. That can only lose proofs, never make wrong ones.
Reals do not round; infinities and NaN are left out. An operation that fails (division by zero, overflow) ends
the query, so claims are about rows where none does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.monotone import INCREASING, branches
from pyspark_paralagg.compile.signs import NEVER_NEGATIVE
from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit

if TYPE_CHECKING:
    from collections.abc import Mapping

Z3 = Any
"""A z3 term. The package has no types, and is imported where it is first needed."""

_MAX_POWER = 8


@dataclass(frozen=True)
class Term:
    """A value, and whether it is null (its value means nothing then)."""

    value: Z3
    null: Z3


@dataclass
class Encoder:
    """Makes terms in one z3 context.

    ``axioms`` collects what holds whatever the variables are: that no operation fails, and what is known of functions
    that z3 does not know. ``guesses`` names those functions: a model may have made up their values.
    """

    z3: Z3
    ctx: Z3
    axioms: list[Z3] = field(default_factory=list)
    guesses: list[str] = field(default_factory=list)
    _path: list[Z3] = field(default_factory=list)
    _applied: dict[str, list[tuple[Z3, Z3]]] = field(default_factory=dict)
    _texts: dict[str, Z3] = field(default_factory=dict)

    def variable(self, name: str, type_: str, *, nullable: bool) -> Term:
        """A fresh constant of a column's type."""
        value = self.z3.Const(name, self.sort(type_))
        return Term(value, self.z3.Bool(f"{name} is null", self.ctx) if nullable else self.truth(value=False))

    def sort(self, type_: str) -> Z3:
        """Int, Bool, or Real: for numbers, and as an order of points for all other types."""
        if type_ == "boolean":
            return self.z3.BoolSort(self.ctx)
        return self.z3.IntSort(self.ctx) if is_integral(type_) else self.z3.RealSort(self.ctx)

    def truth(self, *, value: bool) -> Z3:
        """A constant."""
        return self.z3.BoolVal(value, self.ctx)

    def less(self, a: Z3, b: Z3, *, or_equal: bool = True) -> Z3:
        """``a <= b``; false lies below true."""
        if self.z3.is_bool(a):
            return self.z3.Or(self.z3.Not(a), b) if or_equal else self.z3.And(self.z3.Not(a), b)
        return a <= b if or_equal else a < b

    def encode(self, expr: Expr, env: Mapping[str, Term]) -> Term:
        """``expr`` where its variables are ``env``."""
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
                return self._first(expr, env)
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
            # As it is written: 0.1 is a tenth, not the double beside it.
            value = self.z3.RealVal(str(Fraction(str(lit.value))), self.ctx)
        else:
            value = self._point(str(lit.value), lit.type)
        return Term(value, self.truth(value=False))

    def _point(self, text: str, type_: str) -> Z3:
        name = f"{type_} {text!r}"
        if name not in self._texts:
            point = self.z3.Const(name, self.sort(type_))
            for other, known in self._texts.items():
                if type_ == "string" and other.startswith("string "):
                    self.axioms.append(known < point if other.encode() < name.encode() else point < known)
            self._texts[name] = point
        return self._texts[name]

    def _choice(self, expr: Call, env: Mapping[str, Term]) -> Term:
        conditions, values = branches(expr)
        depth = len(self._path)
        taken: list[tuple[Z3, Term]] = []
        for condition in conditions:
            term = self.encode(condition, env)
            holds = self.z3.And(term.value, self.z3.Not(term.null))
            self._path.append(holds)
            taken.append((holds, self._as(self.encode(values[len(taken)], env), expr.type)))
            self._path[-1] = self.z3.Not(holds)
        if len(values) > len(conditions):
            out = self._as(self.encode(values[-1], env), expr.type)
        else:
            out = self._literal(Lit(None, expr.type))
        del self._path[depth:]
        for holds, term in reversed(taken):
            out = Term(self.z3.If(holds, term.value, out.value), self.z3.If(holds, term.null, out.null))
        return out

    def _logic(self, expr: Call, env: Mapping[str, Term]) -> Term:
        z3, (a, b) = self.z3, expr.args
        left = self.encode(a, env)
        decided = z3.And(z3.Not(left.null), left.value if expr.fn == "Or" else z3.Not(left.value))
        self._path.append(z3.Not(decided))
        right = self.encode(b, env)
        self._path.pop()
        # True where one side is true (Or), false where one is false (And), null where it depends on a null.
        sides = [z3.And(z3.Not(t.null), t.value if expr.fn == "Or" else z3.Not(t.value)) for t in (left, right)]
        found = z3.Or(*sides)
        return Term(found if expr.fn == "Or" else z3.Not(found), z3.And(z3.Not(found), z3.Or(left.null, right.null)))

    def _first(self, expr: Call, env: Mapping[str, Term]) -> Term:
        depth = len(self._path)
        terms: list[Term] = []
        for arg in expr.args:
            terms.append(self._as(self.encode(arg, env), expr.type))
            self._path.append(terms[-1].null)
        del self._path[depth:]
        out = terms[-1]
        for term in reversed(terms[:-1]):
            out = Term(self.z3.If(term.null, out.value, term.value), self.z3.And(term.null, out.null))
        return out

    def _null_aware(self, expr: Call, args: list[Term]) -> Term | None:
        z3, never = self.z3, self.truth(value=False)
        match expr.fn:
            case "IsNull":
                return Term(args[0].null, never)
            case "IsNotNull":
                return Term(z3.Not(args[0].null), never)
            case "EqualNullSafe":
                a, b = self._alike(*args)
                both = z3.And(z3.Not(a.null), z3.Not(b.null), a.value == b.value)
                return Term(z3.Or(both, z3.And(a.null, b.null)), never)
            case "Least" | "Greatest":
                args = [self._as(a, expr.type) for a in args]
                out = args[0]
                for a in args[1:]:
                    wins = self.less(a.value, out.value) if expr.fn == "Least" else self.less(out.value, a.value)
                    takes = z3.Or(out.null, z3.And(z3.Not(a.null), wins))
                    out = Term(z3.If(takes, a.value, out.value), z3.And(out.null, a.null))
                return out
        return None

    def _strict(self, expr: Call, args: list[Term]) -> Term:
        null = self.z3.Or(*(a.null for a in args)) if args else self.truth(value=False)
        value = self._arithmetic(expr, args, null)
        if value is None:
            value = self._comparison(expr, args)
        if value is None:
            return self._unknown(expr, args)
        return Term(value, null)

    def _arithmetic(self, expr: Call, args: list[Term], null: Z3) -> Z3 | None:  # noqa: C901, PLR0911 - a function a line
        if expr.fn == "Cast":
            return self._cast(expr, args[0])
        # A product or quotient of decimals is rounded to the digits of its type.
        if not is_numeric(expr.type) or (expr.type.startswith("decimal") and expr.fn in ("Multiply", "Divide")):
            return None
        a, *rest = [self._as(x, expr.type).value for x in args]
        b = rest[0] if rest else None
        match expr.fn:
            case "Add":
                return a + b
            case "Subtract":
                return a - b
            case "Multiply":
                return a * b
            case "UnaryMinus":
                return -a
            case "UnaryPositive":
                return a
            case "Abs":
                return self.z3.If(a >= 0, a, -a)
            case "Divide" | "IntegralDivide" | "Remainder":
                return self._quotient(expr, a, b, null)
            case "Pow" if isinstance(power := expr.args[1], Lit) and power.value in range(1, _MAX_POWER + 1):
                out = a
                for _ in range(int(power.value or 1) - 1):
                    out = out * a
                return out
            case _:
                return None

    def _quotient(self, expr: Call, a: Z3, b: Z3, null: Z3) -> Z3 | None:
        z3 = self.z3
        if expr.fn == "Divide":
            if is_integral(expr.type):
                return None
            self._never_fails(b != 0, null)
            return a / b
        if not all(is_integral(e.type) for e in (expr, *expr.args)):
            return None
        self._never_fails(b != 0, null)
        size = z3.If(b >= 0, b, -b)
        times = z3.If(a >= 0, a / size, -(-a / size))  # how often |b| fits, towards zero
        if expr.fn == "Remainder":
            return a - size * times
        return z3.If(b >= 0, times, -times)

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
        if is_integral(source):
            return self._as(arg, target).value  # a narrower type, or fewer digits, holds the number or fails
        if is_integral(target):
            whole = self.z3.ToInt
            return self.z3.If(arg.value >= 0, whole(arg.value), -whole(-arg.value))
        return None if "decimal" in source + target else arg.value

    def _unknown(self, expr: Call, args: list[Term]) -> Term:
        """A function of which only this is known: the same for the same, and what ``INCREASING`` and signs say."""
        z3 = self.z3
        name = f"{expr.fn} {[a.type for a in expr.args]} {expr.type}"
        self.guesses.append(expr.fn)
        given = [x for a in args for x in (a.value, a.null)]
        result = z3.Function(name, *(x.sort() for x in given), self.sort(expr.type))(*given)
        null = z3.Or(*(a.null for a in args)) if args else self.truth(value=False)
        is_numbers = is_numeric(expr.type) and all(is_numeric(a.type) for a in expr.args)
        is_increasing = is_numbers and (expr.fn in INCREASING or expr.fn == "Cast") and len(args) == 1
        if is_increasing:
            for x, y in self._applied.get(name, []):
                self.axioms += [z3.Implies(given[0] <= x, result <= y), z3.Implies(given[0] >= x, result >= y)]
            self._applied.setdefault(name, []).append((given[0], result))
        elif expr.nullable:
            null = z3.Function(f"{name} is null", *(x.sort() for x in given), z3.BoolSort(self.ctx))(*given)
        if expr.fn in NEVER_NEGATIVE and is_numeric(expr.type):
            self.axioms.append(result >= 0)
        return Term(result, null)

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


def _is_comparable(type_: str) -> bool:
    return type_ == "boolean" or is_numeric(type_) or type_ in ("string", "date", "timestamp", "timestamp_ntz")
