"""The types of all columns: declared, an input's, or what the rules give.

Types that nobody wrote down are found by going round the rules until nothing changes: a column has the type of what
is put into it, and a float where numbers and floats are. What stays open then can hold nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower.bind import ONE, Slot, UntypedError, bind
from pyspark_paralagg.datalog.lower.terms import BOOLEAN, FLOAT, NUMBER, spoken
from pyspark_paralagg.datalog.resolve.iterations import INITIAL
from pyspark_paralagg.datalog.resolve.shapes import HOLDS, Shape
from pyspark_paralagg.errors import DatalogError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.datalog.lower.bind import Bound
    from pyspark_paralagg.datalog.lower.terms import Terms
    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Flat
    from pyspark_paralagg.datalog.resolve.shapes import Shapes

TypesOf = dict[str, dict[Slot, str]]


def infer(  # noqa: C901, PLR0912, PLR0913, PLR0917 - one loop over all that is known
    rules: Sequence[Flat],
    shapes: Shapes,
    given: Mapping[str, Sequence[str]],
    facts: Mapping[str, Sequence[str]],
    terms: Terms,
    places: Places,
) -> TypesOf:
    """The type of every slot of every relation.

    ``given`` has those of declared relations and of inputs, in order, ``facts`` those that facts have by themselves.
    """
    types: TypesOf = {name: {} for name in shapes.shapes}
    types[ONE] = {("column", 0): NUMBER}
    for name, columns in {**facts, **given}.items():
        types[name] |= {("column", p): t for p, t in enumerate(columns)}
    for name, shape in shapes.shapes.items():
        if not shape.columns:
            types[name]["column", 0] = BOOLEAN
        for p, aggregate in enumerate(shape.aggregates):
            if aggregate in ("count", "mcount"):
                types[name].setdefault(("column", p), NUMBER)
            elif aggregate in ("any", "all"):
                types[name].setdefault(("column", p), BOOLEAN)
    changed = True
    while changed:
        changed = False
        for rule in rules:
            try:
                bound = bind(rule, shapes, types, terms, places)
            except (UntypedError, DatalogError):
                continue  # it is told, if it still holds, when the rule is bound for good
            # Initial rows are rows of the relation: both have one type.
            name = rule.head.relation.removesuffix(INITIAL)
            alike = [types[n] for n in (name, name + INITIAL) if n in types]
            for slot, expr in bound.head.items():
                if name in given and slot[0] == "column":
                    continue
                wider = _wider(alike[0].get(slot), expr.type)
                for own in alike:
                    if wider != own.get(slot):
                        own[slot] = wider
                        changed = True
    return types


def _wider(known: str | None, found: str) -> str:
    if known is None or {known, found} == {NUMBER, FLOAT}:
        return found if known is None else FLOAT
    return known


def typed_head(  # noqa: PLR0913, PLR0917 - a rule and all that its types come from
    rule: Flat, bound: Bound, shape: Shape, types: Mapping[Slot, str], terms: Terms, places: Places
) -> Bound:
    """``bound`` with each slot of the head in the relation's type; an error where that needs a conversion."""
    head = {}
    for slot, expr in bound.head.items():
        fitting = terms.as_type(expr, types[slot])
        if fitting is None:
            p = slot[1]
            name = shape.columns[p] if shape.columns else HOLDS
            at = rule.head.args[p].span if rule.head.args else rule.head.span
            where = (
                f", see {places.describe(shape.place)}" if shape.place.line and shape.place != rule.head.span else ""
            )
            message = (
                f"`{name}` of `{shape.relation}` is a {spoken(types[slot])}{where}, and here a {spoken(expr.type)}"
            )
            hint = "declare the relation with .decl, or convert: to_number, to_string, to_float"
            raise places.error("PARALAGG_DATALOG_TYPE", message, at, value=expr.type, hint=hint)
        head[slot] = fitting
    return type(bound)(bound.atoms, bound.conditions, head)
