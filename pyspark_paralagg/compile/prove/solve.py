"""Decide with z3 the claims that the rule systems leave open, within a machine-independent limit.

The solver gets the negated claim: *unsat* proves it, *sat* gives values that may refute it (``rewrite.evaluate``
confirms them), anything else is unknown. (docs/papers.md: PowerLog, section 3.3; monotone steps beside property 2.)
Answers are cached, since programs repeat the same few claims. z3 is imported at first use.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.prove.bits_to_z3 import BitEncoder, is_about_bits
from pyspark_paralagg.compile.prove.claim import Claim, normalise
from pyspark_paralagg.compile.prove.facts import Facts
from pyspark_paralagg.compile.prove.to_z3 import Encoder, Term
from pyspark_paralagg.program.aggregators import AGGREGATORS, aggregator_named, is_integral, is_numeric
from pyspark_paralagg.program.expr import PACKED, UNPACKED, Call, walk
from pyspark_paralagg.program.functions.value_range import Range, type_range

if TYPE_CHECKING:
    from pyspark_paralagg.compile.prove.to_z3 import Z3
    from pyspark_paralagg.program.expr import Col, Expr

LIMIT = 2_000_000
"""The limit for one claim in z3's resource units; about 200 ms."""
_TIMEOUT_MS = 1_000
"""The time limit for the parts of z3 that do not count units."""
_SMALL = (10, 1_000)
"""Bounds for small integer models, which are tried first because they are easy to read."""

_ORDERS = {"", *(a.name for a in AGGREGATORS.values() if a.has_order)}

Values = dict[str, Any]
Env = dict[str, Term]


@dataclass(frozen=True)
class Answer:
    """The answer of z3: ``proved``, a ``model`` of the negation (two assignments by name), or neither, with ``why``.

    ``is_rounded``: proved for exact fractions, so only up to rounding.
    """

    proved: bool = False
    is_rounded: bool = False
    model: tuple[tuple[tuple[str, Any], ...], ...] | None = None
    why: str = ""


def solve(claim: Claim) -> tuple[Answer, list[Values]]:
    """Return z3's answer for ``claim``, and the assignments of a model: before and after, or the two summands.

    >>> from pyspark_paralagg.compile.prove.claim import Moving
    >>> from pyspark_paralagg.program.expr import Call, Col, Lit
    >>> d = Col("d", "bigint", nullable=False)
    >>> clamp = Call("If", (Call("LessThan", (d, Lit(9, "bigint")), "boolean"), d, Lit(9, "bigint")), "bigint")
    >>> solve(Claim("value", (clamp,), "min", (Moving(d, "min"),)))[0].proved
    True
    """
    plain, names = normalise(claim)
    answer = _decide(plain)
    assignments = [{names[n]: v for n, v in values if n in names} for values in answer.model or ()]
    return answer, assignments


@functools.lru_cache(maxsize=4096)
def _decide(claim: Claim) -> Answer:
    try:
        import z3  # noqa: PLC0415 - a tenth of a second that most programs never need
    except ImportError:  # pragma: no cover - a platform that z3 has no wheel for
        return Answer(why="z3 is not installed")
    answer = Answer() if claim.kind == "linear" else _Query(z3, claim, is_exact=True).answer()
    if answer.proved or not any(_is_rounding(e) for x in (*claim.exprs, *claim.premises) for e in walk(x)):
        return answer if claim.kind != "linear" else _Query(z3, claim, is_exact=False).answer()
    # With exact fractions a model may be a counterexample, and a proof holds up to rounding.
    rounded = _Query(z3, claim, is_exact=False).answer()
    if rounded.proved and claim.kind not in ("linear", "carried", "implied"):
        return Answer(why="z3 does not model rounding")
    return replace(rounded, is_rounded=rounded.proved)


def _is_rounding(expr: Expr) -> bool:
    """Return whether computing ``expr`` may round, or give NaN or an infinity."""
    if not isinstance(expr, Call) or expr.type == "boolean":
        return False
    types = (expr.type, *(a.type for a in expr.args))
    return any(is_numeric(t) and not is_integral(t) for t in types)


class _Query:
    """One claim in a z3 context of its own, since a context must not be shared between threads."""

    def __init__(self, z3: Z3, claim: Claim, *, is_exact: bool) -> None:
        self._z3, self._claim = z3, claim
        aggregators = (claim.aggregator, *(m.aggregator for m in claim.moving))
        encoder = BitEncoder if is_about_bits((*claim.exprs, *claim.premises), aggregators) else Encoder
        facts = Facts(dict(claim.bounds), setting=claim.setting)
        self._encoder = encoder(z3, z3.Context(), facts, is_exact)
        self._moving = {m.variable.name for m in claim.moving}
        self._first = {n: self._variable(c, "") for n, c in claim.variables.items()}
        self._second = {
            n: self._variable(c, "'") if n in self._moving else self._first[n] for n, c in claim.variables.items()
        }

    def _variable(self, col: Col, mark: str) -> Term:
        return self._encoder.variable(col.name + mark, col.type, nullable=col.nullable)

    def answer(self) -> Answer:
        z3, claim = self._z3, self._claim
        bounds = [f for env in (self._first, self._second) for f in self._bounds(env)]
        if claim.kind in ("linear", "constant"):
            holds = [*self._hold(claim.premises, self._first), *self._hold(claim.premises, self._second)]
            conclusion = self._linear() if claim.kind == "linear" else self._constant()
        elif claim.kind == "implied":
            holds = self._hold(claim.premises, self._first)
            [conclusion] = self._hold(claim.exprs, self._first)
        else:
            if not {claim.aggregator, *(m.aggregator for m in claim.moving)} <= _ORDERS:
                return Answer(why="z3 does not model the order of the aggregator")
            holds = [*self._improves(), *self._hold((*claim.premises, *claim.before), self._first)]
            holds += self._hold(claim.premises, self._second)
            conclusion = self._monotone()
        solver = z3.Solver(ctx=self._encoder.ctx)
        solver.set("rlimit", LIMIT)
        solver.set("timeout", _TIMEOUT_MS)
        solver.add(*holds, *bounds, *self._encoder.axioms, z3.Not(conclusion))
        result = solver.check()
        if result == z3.unsat:
            return Answer(proved=True)
        guesses = ", ".join(dict.fromkeys(g.lower() for g in self._encoder.guesses if g not in (PACKED, UNPACKED)))
        if result == z3.sat and not guesses:
            return Answer(model=self._model(solver))
        return Answer(why=f"z3 does not model {guesses}" if guesses else "z3 reaches its limit")

    # Premises

    def _bounds(self, env: Env) -> list[Z3]:
        """Return the bounds of each numeric variable, from its type and the known ranges."""
        formulas, known_ranges = [], dict(self._claim.bounds)
        for name, col in self._claim.variables.items():
            of_type, bounds = type_range(col.type), known_ranges.get(name)
            if of_type is None or (bounds is None and self._claim.setting.ansi):
                continue
            bounds = of_type if bounds is None else of_type.intersect(bounds)
            # With ANSI rules overflow fails, so the bounds of the type need no formula.
            is_plain = self._claim.setting.ansi
            low, high = (
                (bounds.low, bounds.high)
                if not is_plain
                else (
                    -math.inf if bounds.low == of_type.low else bounds.low,
                    math.inf if bounds.high == of_type.high else bounds.high,
                )
            )
            formulas += self._encoder.within(env[name], Range(low, high, bounds.has_nan))
        return formulas

    def _hold(self, conditions: tuple[Expr, ...], env: Env) -> list[Z3]:
        terms = [self._encoder.encode(c, env) for c in conditions]
        return [self._z3.And(t.value, self._z3.Not(t.null)) for t in terms]

    def _improves(self) -> list[Z3]:
        """Return that each recursive variable is as good as before, or better."""
        z3, formulas = self._z3, []
        for m in self._claim.moving:
            old, new = self._first[m.variable.name], self._second[m.variable.name]
            if not m.aggregator.endswith("_by"):
                formulas.append(self._no_worse(m.aggregator, old, new))
            elif m.order is not None:
                # Carried: any value if its order column is better; on a tie the smaller one.
                before, after = self._first[m.order.name], self._second[m.order.name]
                formulas.append(z3.Or(z3.Not(self._same(before, after)), self._no_worse("min", old, new)))
        return formulas

    # Conclusions

    def _monotone(self) -> Z3:
        z3, claim = self._z3, self._claim
        before = [self._encoder.encode(e, self._first) for e in claim.exprs]
        after = [self._encoder.encode(e, self._second) for e in claim.exprs]
        if claim.kind == "filter":
            return z3.Implies(
                z3.And(before[0].value, z3.Not(before[0].null)), z3.And(after[0].value, z3.Not(after[0].null))
            )
        if claim.kind == "value":
            return self._no_worse(claim.aggregator, before[0], after[0])
        tie = z3.And(self._same(before[0], after[0]), self._no_worse("min", before[1], after[1]))
        strictly = z3.And(
            self._no_worse(claim.aggregator.removesuffix("_by"), before[0], after[0]),
            z3.Not(self._same(before[0], after[0])),
        )
        return z3.Or(before[0].null, tie, strictly)  # without an order the row contributed nothing

    def _linear(self) -> Z3:
        """Return that the step of a sum is the sum of the steps; a null adds nothing, or one under count."""
        z3, total = self._z3, dict(self._first)
        for name in self._moving:
            a, b = self._first[name], self._second[name]
            total[name] = Term(self._or_default(a, 0) + self._or_default(b, 0), z3.And(a.null, b.null))
        nothing = 1 if aggregator_named(self._claim.aggregator).counts_rows else 0
        first, second, combined = (
            self._or_default(self._encoder.encode(self._claim.exprs[0], env), nothing)
            for env in (self._first, self._second, total)
        )
        return first + second == combined

    def _constant(self) -> Z3:
        return self._same(*(self._encoder.encode(self._claim.exprs[0], env) for env in (self._first, self._second)))

    def _or_default(self, term: Term, nothing: int) -> Z3:
        return self._z3.If(term.null, nothing, term.value)

    def _same(self, a: Term, b: Term) -> Z3:
        z3 = self._z3
        return z3.And(a.null == b.null, z3.Or(a.null, a.value == b.value))

    def _no_worse(self, aggregator: str, old: Term, new: Term) -> Z3:
        """Return that ``aggregator`` keeps ``new`` when it holds ``old``; a null ``old`` means no value yet."""
        z3, less = self._z3, self._encoder.less
        match aggregator_named(aggregator).moves:
            case "down":
                is_kept = less(new.value, old.value)
            case "bits_up":
                is_kept = (new.value | old.value) == new.value
            case "bits_down":
                is_kept = (new.value & old.value) == new.value
            case _:
                is_kept = less(old.value, new.value)
        return z3.Or(old.null, z3.And(z3.Not(new.null), is_kept))

    # Counterexamples

    def _model(self, solver: Z3) -> tuple[tuple[tuple[str, Any], ...], ...]:
        z3 = self._z3
        model = solver.model()
        numbers = [t for env in (self._first, self._second) for n, t in env.items()]
        for limit in _SMALL:
            solver.push()
            for t in numbers:
                solver.add(z3.Not(t.null))
                if z3.is_arith(t.value) or z3.is_bv(t.value):
                    solver.add(t.value >= -limit, t.value <= limit)
                if z3.is_real(t.value):
                    solver.add(z3.IsInt(t.value))
            if solver.check() == z3.sat:
                model = solver.model()
                solver.pop()
                break
            solver.pop()
        types = self._claim.variables
        return tuple(
            tuple((n, self._python(model, t, types[n].type)) for n, t in env.items())
            for env in (self._first, self._second)
        )

    def _python(self, model: Z3, term: Term, type_: str) -> Any:  # noqa: ANN401 - a value of any type
        z3 = self._z3
        if z3.is_true(model.eval(term.null, model_completion=True)):
            return None
        value = model.eval(term.value, model_completion=True)
        if z3.is_bool(value):
            return bool(z3.is_true(value))
        if z3.is_bv_value(value):
            return int(value.as_signed_long())
        if z3.is_algebraic_value(value):
            value = value.approx(20)
        number = (
            Fraction(value.numerator_as_long(), value.denominator_as_long()) if z3.is_real(value) else value.as_long()
        )
        if is_numeric(type_):
            return int(number) if is_integral(type_) or number == int(number) else float(number)
        return None  # a point of an order represents no particular text; evaluation cannot reproduce it
