"""Add guards: checks of rows, at load or in the loop, that a proof relies on.

``d + w`` is not monotone if ``d`` may be -inf and ``w`` inf, and no type excludes that. A guard does: the proof takes a
column of doubles as finite, and a row with an infinity or NaN ends the query with ``PARALAGG_ASSUMPTION_VIOLATED``.
Only what the proof needs is guarded: first nothing, then base rows, then inputs of rules, then derived values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.compile.prove.monotone import CHECKABLE
from pyspark_paralagg.compile.rewrite.scope import dependents_in, variables
from pyspark_paralagg.compile.rewrite.simplify import with_input
from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Call, Expr, Lit, columns, walk
from pyspark_paralagg.program.functions.value_range import Range, finite
from pyspark_paralagg.program.text import input_name, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.program.program import Input, Mode, Program, Rule

_LEVELS = ("base", "input", "value")
_CALENDAR = ("DateAdd", "DateSub", "AddMonths", "DateAddYMInterval", "TimestampAddYMInterval")
_NULL_TESTS = ("IsNull", "IsNotNull", "Coalesce", "EqualNullSafe")
_NAN_TESTS = ("IsNaN", "NaNvl")
_DAYS = Range(-(1 << 30), 1 << 30)


@dataclass(frozen=True)
class Guard:
    """A checked expression: expression ``position`` of an input, of a rule's atom, or of a rule's head.

    ``owner`` is the id of the input (``base``) or the position of the rule; ``name`` appears in messages. Without a
    ``range`` the guard refuses nulls.
    """

    kind: Literal["base", "input", "value"]
    owner: int
    atom: int
    position: int
    name: str
    range: Range | None

    @property
    def condition(self) -> str:
        """Return the condition that checked values satisfy, as text."""
        if self.range is None:
            return "not null"
        if isinstance(self.range.high, float):
            return "above -Infinity" if self.range.has_nan else "finite (no infinity, no NaN)"
        return f"between {self.range.low} and {self.range.high}"

    def note(self, mode: Mode) -> str:
        """Return the note for ``explain``: checked for each row, or trusted."""
        status = "trusted by the user" if mode == "trust" else "which is checked for each row"
        return f"{self.name} is {self.condition}, {status}"


def guard_levels(program: Program, names: tuple[str, ...]) -> Iterator[tuple[Guard, ...]]:
    """Yield sets of possible guards for the stratum ``names``, the smallest first.

    A step that tests for nulls or NaN handles them, so no guard refuses them there.
    """
    rules = [r for r in program.rules if r.head in names]
    functions = {e.fn for r in rules for x in (*r.exprs, *r.conditions) for e in walk(x) if isinstance(e, Call)}
    takes_null, takes_nan = bool(functions & set(_NULL_TESTS)), bool(functions & set(_NAN_TESTS))
    possible = [g for g in _guards(program, names) if not (takes_null if g.range is None else takes_nan)]
    guards: list[Guard] = []
    yield ()
    for kind in _LEVELS:
        more = [g for g in possible if g.kind == kind]
        if more:
            guards += more
            yield tuple(guards)


def weaken(guard: Guard) -> Guard | None:
    """Return the guard that accepts infinity and NaN; None if it does already, or checks something else."""
    if guard.range is None or not isinstance(guard.range.high, float) or guard.range.has_nan:
        return None
    return replace(guard, range=Range(guard.range.low, math.inf, has_nan=True))


def _guards(program: Program, names: tuple[str, ...]) -> Iterator[Guard]:
    for r in (program.relation(n) for n in names):
        for i in dict.fromkeys((r.base, r.initial)):
            if i is None:
                continue
            source = program.input(i)
            # A relation that drive_static made has keys only; there the keys are checked.
            first = len(r.keys) if any(rule.head == r.name for rule in program.rules) else 0
            for p in range(first, len(source.exprs)):
                for range_ in _ranges_to_check(source.exprs[p], None):
                    yield Guard("base", source.id, -1, p, f"{r.name}.{r.supplied[p].name}", range_)
    for n, rule in enumerate(program.rules):
        if rule.head in names:
            yield from _rule_guards(n, rule, program)


def _rule_guards(number: int, rule: Rule, program: Program) -> Iterator[Guard]:
    scope, head = variables(rule, program), program.relation(rule.head)
    values = rule.exprs[len(head.keys) :]
    # A value of a non-recursive rule may be the first value of a key, like a base row's.
    proof_exprs = (*values, *(c for c in rule.conditions if dependents_in(c, scope)))
    read = {c for e in proof_exprs for c in columns(e)}
    has_dates = any(isinstance(e, Call) and e.fn in _CALENDAR for x in proof_exprs for e in walk(x))
    for name in sorted(read):
        v = scope[name]
        source = rule.body[v.atom].input
        if source is None or program.input(source).relation is not None or rule.body[v.atom].kind != "join":
            continue
        expr = program.input(source).exprs[v.position]
        for range_ in _ranges_to_check(expr, _DAYS if has_dates and is_integral(expr.type) else None):
            label = f"{input_name(program.input(source))}.{show(expr)}"
            yield Guard("input", number, v.atom, v.position, label, range_)
    for p, expr in enumerate(values, len(head.keys)):
        for range_ in _ranges_to_check(expr, None):
            yield Guard("value", number, -1, p, f"{head.name}.{head.supplied[p].name}", range_)


def _with_exprs(program: Program, source: Input, exprs: tuple[Expr, ...]) -> tuple[Program, int]:
    """Return the program with ``source`` changed to ``exprs``, and its id; a new input if others read ``source``."""
    changed = replace(source, exprs=exprs)
    if _inputs_in_use(program).count(source.id) > 1:
        return with_input(program, changed)
    return replace(program, inputs=tuple(changed if i.id == source.id else i for i in program.inputs)), source.id


def _inputs_in_use(program: Program) -> list[int | None]:
    """Return the input ids of atoms, bases and initial rows, with repetition."""
    atoms = [a.input for r in program.rules for a in r.body]
    return atoms + [i for r in program.relations for i in (r.base, r.initial)]


def _ranges_to_check(expr: Expr, days: Range | None) -> Iterator[Range | None]:
    range_ = finite(expr.type) or days
    if range_ is not None:
        yield range_
    if may_be_null(expr):
        yield None


def add_guards(program: Program, guards: tuple[Guard, ...]) -> Program:
    """Return ``program`` with these guards in its inputs and rules."""
    for g in guards:
        if g.kind == "base":
            source = program.input(g.owner)
            exprs = _with_check(source.exprs, g)
            inputs = tuple(replace(i, exprs=exprs) if i.id == g.owner else i for i in program.inputs)
            program = replace(program, inputs=inputs)
            continue
        rule = program.rules[g.owner]
        if g.kind == "value":
            rule = replace(rule, exprs=_with_check(rule.exprs, g))
        else:
            atom = rule.body[g.atom]
            source = program.input(atom.input if atom.input is not None else -1)
            program, input_id = _with_exprs(program, source, _with_check(source.exprs, g))
            body = (*rule.body[: g.atom], replace(atom, input=input_id), *rule.body[g.atom + 1 :])
            rule = replace(rule, body=body)
        program = replace(program, rules=(*program.rules[: g.owner], rule, *program.rules[g.owner + 1 :]))
    used = _inputs_in_use(program)
    return replace(program, inputs=tuple(i for i in program.inputs if i.id in used))


def _with_check(exprs: tuple[Expr, ...], guard: Guard) -> tuple[Expr, ...]:
    expr = exprs[guard.position]
    message = (
        f"[PARALAGG_ASSUMPTION_VIOLATED] the proof requires that {guard.name} is {guard.condition} (filter other rows "
        "out, assume a bound such as 'w >= 0', or use mode='iterate'), but a row has "
    )
    hint = Lit(message, "string")
    if guard.range is None:
        call = Call("Present", (expr, hint), expr.type, nullable=False)
    else:
        bounds = (guard.range.low, None if guard.range.has_nan else guard.range.high)
        low, high = (Lit(b, expr.type) for b in bounds)  # type: ignore[arg-type]
        call = Call("Between", (expr, low, high, hint), expr.type, may_be_null(expr))
    return (*exprs[: guard.position], call, *exprs[guard.position + 1 :])


def with_overflow_checks(rule: Rule, program: Program) -> Rule:
    """Return ``rule`` with overflow checks on integers computed from values of the recursion."""
    scope = variables(rule, program)

    def checked(expr: Expr) -> Expr:
        if not isinstance(expr, Call):
            return expr
        call = replace(expr, args=tuple(checked(a) for a in expr.args))
        needs = expr.fn in CHECKABLE and is_integral(expr.type) and dependents_in(expr, scope)
        return replace(call, checked=True) if needs else call

    return replace(rule, exprs=tuple(map(checked, rule.exprs)), conditions=tuple(map(checked, rule.conditions)))
