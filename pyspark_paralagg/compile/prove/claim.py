"""Define Claim, a closed formula about a rule that ``solve`` decides: moving variables, premises and a conclusion.

    value     the row gets better  =>  ``exprs[0]`` gets no worse under ``aggregator``
    filter    the row gets better  =>  ``exprs[0]`` stays true
    carried   the row gets better  =>  the pair ``exprs`` = (order, carried) gets no worse in its lexicographic order
    linear    ``exprs[0]`` of a sum is the sum of ``exprs[0]``
    constant  ``exprs[0]`` is the same whatever the sums are
    implied   ``exprs[0]`` is true wherever the premises are (orders of user-defined aggregators)

Claims are normalised (variables by position, no handles), so that equal forms share one cached answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, columns, substitute, walk
from pyspark_paralagg.program.functions.function import DEFAULT_SETTING, Setting
from pyspark_paralagg.program.functions.value_range import Range

if TYPE_CHECKING:
    from pyspark_paralagg.compile.prove.facts import Facts

Kind = Literal["value", "filter", "carried", "linear", "constant", "implied"]
Bound = tuple[str, Range]


@dataclass(frozen=True)
class Moving:
    """A recursive value that ``aggregator`` improves; ``order`` is the order variable of a carried one.

    A carried variable has no ``order`` if the rule does not read its order column; then it may become anything.
    """

    variable: Col
    aggregator: str
    order: Col | None = None


@dataclass(frozen=True)
class Claim:
    """A claim of one of the kinds above. ``premises`` hold before and after the row improves, ``before`` only before.

    ``bounds`` are ranges of variables.
    """

    kind: Kind
    exprs: tuple[Expr, ...]
    aggregator: str
    moving: tuple[Moving, ...]
    premises: tuple[Expr, ...] = ()
    before: tuple[Expr, ...] = ()
    bounds: tuple[Bound, ...] = ()
    setting: Setting = DEFAULT_SETTING

    @property
    def variables(self) -> dict[str, Col]:
        """Return all variables by name, in order of appearance in the claim."""
        exprs = (*self.exprs, *self.before, *self.premises)
        orders = (m.order for m in self.moving if m.order)
        read = [e for x in exprs for e in walk(x) if isinstance(e, Col)]
        return {c.name: c for c in (*read, *orders)}


def normalise(claim: Claim) -> tuple[Claim, dict[str, str]]:
    """Return the relevant part of the claim with variables ``v0 v1 ...``, and the original name of each variable."""
    claim = _relevant(claim)
    names = {name: f"v{n}" for n, name in enumerate(claim.variables)}

    def renamed(col: Col) -> Col:
        return replace(col, name=names[col.name])

    def bare(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(_without_handles(substitute(e, renamed)) for e in exprs)

    plain = replace(
        claim,
        exprs=bare(claim.exprs),
        premises=bare(claim.premises),
        before=bare(claim.before),
        moving=tuple(Moving(renamed(m.variable), m.aggregator, m.order and renamed(m.order)) for m in claim.moving),
        bounds=tuple((names[n], s) for n, s in claim.bounds),
    )
    return plain, {new: old for old, new in names.items()}


def _relevant(claim: Claim) -> Claim:
    """Drop premises that share no variable, directly or indirectly, with the claim's expressions."""
    reached = {c for e in claim.exprs for c in columns(e)}
    orders = {m.variable.name: m.order.name for m in claim.moving if m.order}
    premises = (*claim.premises, *claim.before)
    while True:
        more = {c for p in premises if columns(p) & reached for c in columns(p)}
        more |= {orders[n] for n in reached if n in orders}
        if more <= reached:
            break
        reached |= more
    return replace(
        claim,
        moving=tuple(m for m in claim.moving if m.variable.name in reached),
        premises=tuple(p for p in claim.premises if columns(p) & reached),
        before=tuple(p for p in claim.before if columns(p) & reached),
        bounds=tuple((n, s) for n, s in claim.bounds if n in reached),
    )


def _without_handles(expr: Expr) -> Expr:
    if isinstance(expr, Call):
        return replace(expr, handle=None, args=tuple(_without_handles(a) for a in expr.args))
    return replace(expr, handle=None) if isinstance(expr, Lit) else expr


def bounds_of(facts: Facts) -> tuple[Bound, ...]:
    """Return the known ranges, sorted by variable."""
    return tuple(sorted(facts.ranges.items(), key=lambda item: item[0]))
