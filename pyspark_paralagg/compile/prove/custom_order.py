"""State the monotonicity of a user-defined aggregator as a claim: its ``combine`` defines the order.

A value is no worse than another if combining both gives it again. So ``(cost + w, hops + 1)`` under an aggregator that
keeps the cheapest pair becomes a formula for z3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.prove.claim import Claim, bounds_of
from pyspark_paralagg.compile.rewrite.evaluate import NotEvaluableError, evaluate
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.expr import Call, Col, Expr, columns, substitute
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.compile.prove.facts import Facts
    from pyspark_paralagg.compile.rewrite.scope import Variable
    from pyspark_paralagg.program.custom import Custom

_NEW = "'"
_FALLS = [a.name for a in AGGREGATORS.values() if a.moves == "down"]
_RISES = [a.name for a in AGGREGATORS.values() if a.moves == "up"]


@dataclass(frozen=True)
class CustomClaim:
    """A claim, and the rendering of a model that refutes it."""

    claim: Claim
    exprs: tuple[Expr, ...]
    custom: Custom

    def render(self, values: dict[str, Any], _: dict[str, Any]) -> str | None:
        """Return both rows and their results as text; None if the values do not refute the claim."""
        old = {n: v for n, v in values.items() if not n.endswith(_NEW)}
        new = old | {n.removesuffix(_NEW): v for n, v in values.items() if n.endswith(_NEW)}
        try:
            if not all(evaluate(p, values) is True for p in self.claim.premises):
                return None
            if evaluate(self.claim.exprs[0], values) is True:
                return None
            gives = [[evaluate(e, side) for e in self.exprs] for side in (old, new)]
        except NotEvaluableError:
            return None
        changed = [n for n in old if old[n] != new[n]]
        rest = ", ".join(f"{n}={v}" for n, v in old.items() if n not in changed)
        changes = [", ".join(f"{n}={side[n]}" for n in changed) for side in (new, old)]
        text = ", ".join(show(e) for e in self.exprs)
        return (
            f"{f'with {rest}: ' if rest else ''}{changes[0]} improves {changes[1]}, but {text} gives "
            f"{_tuple(gives[1])}, which {self.custom.name} does not keep over {_tuple(gives[0])}"
        )


def claim_of_custom(
    exprs: tuple[Expr, ...],
    custom: Custom,
    scope: Mapping[str, Variable],
    facts: Facts,
    conditions: tuple[Expr, ...],
) -> CustomClaim | None:
    """Return the claim that ``exprs`` get no worse under ``custom`` as the row improves; None without known orders."""
    if not custom.combine:
        return None
    moved: dict[str, Col] = {}
    premises: list[Expr] = []
    done: set[tuple[int, str]] = set()
    for name, v in scope.items():
        d = v.dependent
        if d is None or not any(name in columns(e) for e in (*exprs, *conditions)):
            continue
        if d.custom is not None:
            if (v.atom, d.custom.name) in done:
                continue
            done.add((v.atom, d.custom.name))
            old = _parts(v.atom, d.custom, scope)
            new = [replace(c, name=c.name + _NEW) for c in old]
            moved |= {o.name: n for o, n in zip(old, new, strict=True)}
            premises.append(_no_worse(d.custom, old, new))
        elif d.aggregator in (*_FALLS, *_RISES):
            before = Col(name, v.column.type, v.column.nullable)
            after = moved[name] = replace(before, name=name + _NEW)
            fn = "LessThanOrEqual" if d.aggregator in _FALLS else "GreaterThanOrEqual"
            better = Call(fn, (after, before), "boolean")
            premises.append(Call("Or", (Call("IsNull", (before,), "boolean"), better), "boolean"))
        else:
            return None

    def improved(expr: Expr) -> Expr:
        return substitute(expr, lambda c: moved.get(c.name, c))

    premises += dict.fromkeys([*conditions, *map(improved, conditions)])
    current, following = list(exprs), [improved(e) for e in exprs]
    nulls: list[Expr] = [Call("IsNull", (e,), "boolean") for e in current]
    conclusion = _or(reduce(_or, nulls), _no_worse(custom, current, following))
    claim = Claim("implied", (conclusion,), "", (), tuple(premises), (), bounds_of(facts), facts.setting)
    return CustomClaim(claim, exprs, custom)


def _parts(atom: int, custom: Custom, scope: Mapping[str, Variable]) -> list[Col]:
    """Return the columns of one use of ``custom`` in an atom; columns that the rule does not read get new names."""
    parts: list[Col] = []
    for part, name in enumerate(custom.columns):
        column = next(
            (
                Col(n, v.column.type, nullable=False)
                for n, v in scope.items()
                if v.atom == atom and v.dependent and v.dependent.custom == custom and v.dependent.part == part
            ),
            None,
        )
        parts.append(column or Col(f"{name} of atom {atom}", custom.combine[part].type, nullable=False))
    return parts


def _no_worse(custom: Custom, old: Sequence[Expr], new: Sequence[Expr]) -> Expr:
    """Return the condition that combining ``old`` and ``new`` gives ``new``."""
    values = {f"old.{c}": e for c, e in zip(custom.columns, new, strict=True)}
    values |= {f"new.{c}": e for c, e in zip(custom.columns, old, strict=True)}
    kept = [substitute(e, lambda c: values[c.name]) for e in custom.combine]
    same: list[Expr] = [Call("EqualTo", (k, n), "boolean") for k, n in zip(kept, new, strict=True)]
    return reduce(_and, same)


def _and(a: Expr, b: Expr) -> Expr:
    return Call("And", (a, b), "boolean")


def _or(a: Expr, b: Expr) -> Expr:
    return Call("Or", (a, b), "boolean")


def _tuple(values: list[Any]) -> str:
    return str(values[0]) if len(values) == 1 else f"({', '.join(map(str, values))})"
