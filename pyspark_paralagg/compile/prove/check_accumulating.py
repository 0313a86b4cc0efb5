"""Check that a rule of an accumulating stratum is linear in its sums (Wang et al., PowerLog, theorem 1).

    one recursive atom        rows added to two atoms in different rounds join only if both are read again
    no filter on a sum        a part of a sum may pass a filter that the whole fails
    values linear             f(a + b) = f(a) + f(b): property 2, G o F' o G = G o F', of sums

Each claim is decided by the rule system (``linear``), then small values, then z3. A value that is linear only up to
rounding is proved ``of_whole_values``: the stratum is *iterated*.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.check_lattice import is_copy
from pyspark_paralagg.compile.prove.claim import Claim, Kind, Moving, bounds_of
from pyspark_paralagg.compile.prove.counterexample import against_constant, against_linear
from pyspark_paralagg.compile.prove.decide import Decision, read_by
from pyspark_paralagg.compile.prove.invariants import assumable_in, premises_of, unhoisted
from pyspark_paralagg.compile.prove.linear import Degree, degree
from pyspark_paralagg.compile.prove.render import render_constant, render_linear
from pyspark_paralagg.compile.prove.rule_facts import facts_of
from pyspark_paralagg.compile.prove.verdict import Judgement, Proved, Refuted, Unknown, Verdict
from pyspark_paralagg.compile.rewrite.evaluate import NotEvaluableError, evaluate
from pyspark_paralagg.compile.rewrite.scope import dependents_in, recursive_atoms, variables
from pyspark_paralagg.errors import VerificationError
from pyspark_paralagg.program.expr import Col, Expr, columns, walk
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.compile.prove.facts import Invariants
    from pyspark_paralagg.program.custom import Custom
    from pyspark_paralagg.program.program import Dependent, Program, Rule

_CODE = "PARALAGG_NOT_LINEAR"
_NULLS = "write coalesce(..., 0) around each of {}, as one may arrive without the other, "
_RULES = "the rules of linear expressions"
_BY_RULES: dict[Degree, Proved] = {
    "zero": Proved(_RULES),
    "linear": Proved(_RULES),
    "rounded": Proved(_RULES, is_rounded=True, of_whole_values=True),
}
_COPIES = "only copies of its columns are proved"


def check_accumulating(rule: Rule, program: Program, invariants: Invariants) -> Iterator[Judgement]:
    """Yield a judgement for each filter and each value of ``rule``, and one if it reads several recursive atoms.

    Of ``invariants``, only the columns without nulls hold: sums have no bounds here.

    Yields none for a rule driven by a relation of ``drive_static``: no rule adds to that relation.
    """
    if not {rule.body[n].relation for n in recursive_atoms(rule)} & {r.head for r in program.rules}:
        return
    rule, program = unhoisted(rule, program)
    check = _RuleCheck(rule, program, invariants)
    if len(recursive_atoms(rule)) > 1:
        yield check.product()
    for condition in rule.conditions:
        yield from check.filter(condition)
    head = program.relation(rule.head)
    for position, (d, expr) in enumerate(zip(head.dependents, rule.exprs[len(head.keys) :], strict=True)):
        if d.custom is None:
            yield check.value(expr, d)
        elif d.part == 0:
            exprs = rule.exprs[len(head.keys) + position :][: len(d.custom.columns)]
            yield check.custom(exprs, d, d.custom)


class _RuleCheck:
    def __init__(self, rule: Rule, program: Program, invariants: Invariants) -> None:
        self._rule = rule
        self._head = program.relation(rule.head)
        self._scope = variables(rule, program)
        self._facts = facts_of(rule, program)
        self._present = facts_of(rule, program, invariants).present
        self._premises = (*premises_of(rule, program), *(c for c in rule.conditions if not self._reads_recursion(c)))
        self._assumable = assumable_in(rule, program)
        self._sums = {
            n: Col(n, v.column.type, v.column.nullable) for n, v in self._scope.items() if v.dependent is not None
        }

    def product(self) -> Judgement:
        """Refute a product of recursive atoms: the step of two parts is not the sum of their steps."""
        names = [str(self._rule.body[n].relation) for n in recursive_atoms(self._rule)]
        d, expr = self._head.dependents[0], self._rule.exprs[len(self._head.keys)]
        claim = f"{d.column.name} = {show(expr)} reads one recursive atom"
        problem = f"{d.column.name} accumulates, but the rule multiplies {' with '.join(names)}"
        return self._judgement(claim, Refuted(self._parts_of_a_product(expr)), problem, d.column.name)

    def _parts_of_a_product(self, expr: Expr) -> str:
        fixed = {e.name: 1 for e in walk(expr) if isinstance(e, Col)}
        read = columns(expr) & set(self._sums)
        try:
            one, two, total = (evaluate(expr, fixed | dict.fromkeys(read, n)) for n in (1, 2, 3))
            if one + two != total:
                parts = [", ".join(f"{c}={n}" for c in sorted(read)) for n in (1, 2, 3)]
                return (
                    f"parts from two rounds, {parts[0]} and {parts[1]}, give {one} and {two} separately, "
                    f"but their sum {parts[2]} gives {total}"
                )
        except (NotEvaluableError, TypeError):
            pass
        return "the join of rows from two different rounds is missing if each round is joined separately"

    def filter(self, condition: Expr) -> Iterator[Judgement]:
        """Judge that ``condition`` is the same for the parts of a sum and for the sum."""
        if not self._reads_recursion(condition):
            return
        v = self._scope[dependents_in(condition, self._scope)[0]]
        sums = frozenset(self._sums) & columns(condition)
        decision = Decision(
            rules=lambda _: None,
            sampled=lambda: against_constant(condition, sums, self._facts),
            claim=self._claim("constant", condition, ""),
            render=lambda left, right: render_constant(condition, sums, left, right),
        )
        claim = f"the filter {show(condition)} does not depend on {v.column.name}"
        problem = f"the filter {show(condition)} reads {v.column.name}, a sum that still changes"
        yield self._judgement(claim, decision.verdict(self._facts, {}), problem, v.column.name)

    def value(self, expr: Expr, d: Dependent) -> Judgement:
        """Judge that ``expr`` is linear in the sums that it reads."""
        name = d.column.name
        claim = f"{name} = {show(expr)} is linear under {d.aggregator}"
        nullable = frozenset(n for n, c in self._sums.items() if c.nullable and n not in self._present)
        expr_degree = degree(expr, frozenset(self._sums), nullable, self._facts.setting)
        if expr_degree == "const":
            problem = f"{name} = {show(expr)} reads no sum, so it counts reached keys instead of rows"
            hint = f"multiply the recursive {name} by the value of each row"
            example = f"a key reached by sums 1 and 2 gives {show(expr)} once; {hint}"
            return self._judgement(claim, Refuted(example), problem, name)
        sums = frozenset(self._sums) & columns(expr)
        decision = Decision(
            rules=lambda _: _BY_RULES.get(expr_degree),
            sampled=lambda: against_linear(expr, sums, nullable & sums, self._facts),
            claim=self._claim("linear", expr, d.aggregator),
            render=lambda left, right: render_linear(expr, sums, left, right),
        )
        verdict = decision.verdict(self._facts, read_by((expr,), self._assumable))
        found = self._judgement(claim, verdict, f"{name} = {show(expr)} is not linear under {d.aggregator}", name)
        is_linear_without_nulls = degree(expr, sums) in ("linear", "rounded")
        return replace(found, instead=_NULLS.format(", ".join(sorted(sums)))) if is_linear_without_nulls else found

    def custom(self, exprs: tuple[Expr, ...], d: Dependent, custom: Custom) -> Judgement:
        """Judge the columns of a user-defined aggregator: it needs an inverse, and only copies are proved."""
        if not custom.has_inverse:
            raise VerificationError(
                "PARALAGG_AGGREGATOR_LAW",
                f"the aggregator {custom.name} is not idempotent, so its values add up: {custom.doubts}",
                value=custom.name,
                place=self._rule.place,
                hint='pass inverse=... to ra.aggregator, or use mode="iterate", which recomputes all rows each round',
            )
        text = ", ".join(show(e) for e in exprs)
        verdict: Verdict = Proved("copying") if is_copy(exprs, custom, self._scope) else Unknown((_COPIES,))
        return self._judgement(f"{text} is linear under {custom.name}", verdict, text, d.column.name)

    def _reads_recursion(self, expr: Expr) -> bool:
        return bool(dependents_in(expr, self._scope))

    def _claim(self, kind: Kind, expr: Expr, aggregator: str) -> Claim:
        moving = tuple(Moving(c, "sum") for c in self._sums.values())
        bounds = tuple(b for b in bounds_of(self._facts) if b[0] not in self._sums)
        return Claim(kind, (expr,), aggregator, moving, self._premises, (), bounds, self._facts.setting)

    def _judgement(self, claim: str, verdict: Verdict, problem: str, column: str) -> Judgement:
        return Judgement(claim, verdict, _CODE, problem, column, self._rule.place)
