"""How the check refuses: with the column, the place, what was found, and the ways out. One wording for all claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark_paralagg.compile.scope import Variable, variables
from pyspark_paralagg.compile.signs import Signs, facts_of
from pyspark_paralagg.errors import VerificationError
from pyspark_paralagg.program.aggregators import is_numeric
from pyspark_paralagg.program.expr import Call, Expr, columns
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.program import Program, Rule

_WAYS_OUT = 'write the step another way, or ask for mode="iterate", which recomputes every round'


class Refuser:
    """Raises what the check finds; ``notes`` collects what was let through."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.notes: list[str] = []

    def check_shape(self, rule: Rule) -> None:
        """No value of the recursion is a key of the head or joins atoms."""
        scope = variables(rule, self._program)
        head = self._program.relation(rule.head)
        for key, expr in zip(head.keys, rule.exprs, strict=False):
            found = dependents_in(expr, scope)
            if found:
                v = scope[found[0]]
                raise VerificationError(
                    "PARALAGG_DEPENDENT_AS_KEY",
                    f"the key {key.name} is {show(expr)}, made of {v.relation}.{v.column.name}, which "
                    f"{_aggregator(v)} aggregates in this recursion",
                    value=v.column.name,
                    place=rule.place,
                    hint=f"let the key be made of keys, or read {v.relation} in a later query",
                )
        for condition in rule.conditions:
            found = dependents_in(condition, scope)
            atoms = {scope[c].atom for c in columns(condition)}
            if (
                found
                and len(atoms) > 1
                and isinstance(condition, Call)
                and condition.fn in ("EqualTo", "EqualNullSafe")
            ):
                v = scope[found[0]]
                raise VerificationError(
                    "PARALAGG_JOIN_ON_DEPENDENT",
                    f"{show(condition)} joins on {v.relation}.{v.column.name}, which {_aggregator(v)} aggregates in "
                    "this recursion",
                    value=v.column.name,
                    place=rule.place,
                    hint=f"join on a key column, or read {v.relation} in a later query",
                )

    def refuted(self, code: str, what: str, column: str, rule: Rule, example: str) -> NoReturn:
        """A claim that a counterexample ends; no mode but ``iterate`` takes it."""
        raise VerificationError(code, f"{what}: {example}", value=column, place=rule.place, hint=_WAYS_OUT)

    def unknown(self, what: str, column: str, rule: Rule, help_: str | None) -> None:
        """A claim that is neither proved nor refuted: taken with ``mode="trust"`` alone."""
        if self._program.mode == "trust":
            self.notes.append(f"{rule.place}: {what} is not proved, trusted by the user")
            return
        ways = (
            f'assume="{help_}" if that is so, mode="trust" if you know better, '
            if help_
            else 'mode="trust" if you know better, '
        )
        raise VerificationError(
            "PARALAGG_NOT_PROVED",
            f"{what} is neither proved nor refuted",
            value=column,
            place=rule.place,
            hint=ways + _WAYS_OUT,
        )

    def assumption_for(
        self, rule: Rule, exprs: tuple[Expr, ...], is_proved: Callable[[dict[str, Signs]], bool]
    ) -> str | None:
        """An assumption about one column that would prove the claim about ``exprs``."""
        scope = variables(rule, self._program)
        facts = facts_of(rule, self._program)
        cols = sorted({c for e in exprs for c in columns(e)})
        for sign, found in ((">= 0", frozenset((0, 1))), ("> 0", frozenset((1,))), ("<= 0", frozenset((-1, 0)))):
            for name in cols:
                v = scope[name]
                if not is_numeric(v.column.type) or v.role != "static":
                    continue
                if is_proved(facts | {name: facts[name] & found}):
                    return f"{v.column.name} {sign}"
        return None


def dependents_in(expr: Expr, scope: dict[str, Variable]) -> list[str]:
    """The variables in ``expr`` that are values of the recursion."""
    return sorted(c for c in columns(expr) if scope[c].role == "dependent")


def _aggregator(v: Variable) -> str:
    return v.dependent.aggregator if v.dependent else ""
