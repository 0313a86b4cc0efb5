"""Infer the types of all columns: from declarations, from inputs, or from the rules.

Undeclared types come from repeating all rules until nothing changes. A column has the type of the values that rules
put into it, and float if these are numbers and floats. A column that still has no type can hold no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower.bind import ONE, Slot, UntypedError, bind
from pyspark_paralagg.datalog.lower.terms import BOOLEAN, FLOAT, NUMBER, datalog_type
from pyspark_paralagg.datalog.resolve.iterations import INITIAL
from pyspark_paralagg.datalog.resolve.shapes import HOLDS, Shape
from pyspark_paralagg.errors import DatalogError
from pyspark_paralagg.program.aggregators import AGGREGATORS, aggregator_named, is_integral
from pyspark_paralagg.program.sets import element_type, set_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.datalog.lower.bind import Bound
    from pyspark_paralagg.datalog.lower.terms import Terms
    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Flat
    from pyspark_paralagg.datalog.resolve.shapes import Shapes

SlotTypes = dict[str, dict[Slot, str]]


def infer(  # noqa: C901, PLR0912, PLR0913, PLR0917 - one loop over all sources of types
    rules: Sequence[Flat],
    shapes: Shapes,
    declared: Mapping[str, Sequence[str]],
    facts: Mapping[str, Sequence[str]],
    terms: Terms,
    places: Places,
) -> SlotTypes:
    """Return the type of every slot of every relation.

    ``declared`` has the column types of declared relations and of inputs, ``facts`` the types of the facts' values.
    """
    types: SlotTypes = {name: {} for name in shapes.shapes}
    types[ONE] = {("column", 0): NUMBER}
    for name, columns in {**facts, **declared}.items():
        types[name] |= {("column", p): t for p, t in enumerate(columns)}
    for name, shape in shapes.shapes.items():
        if not shape.columns:
            types[name]["column", 0] = BOOLEAN
        for p, aggregate in enumerate(shape.aggregates):
            if aggregator_named(aggregate).counts:
                types[name].setdefault(("column", p), NUMBER)
            elif aggregator_named(aggregate).is_truth:
                types[name].setdefault(("column", p), BOOLEAN)
    changed = True
    while changed:
        changed = False
        for rule in rules:
            try:
                bound = bind(rule, shapes, types, terms, places)
            except (UntypedError, DatalogError):
                continue  # an error that persists is raised by the final bind
            # Initial rows are rows of the relation, so both have the same type.
            name = rule.head.relation.removesuffix(INITIAL)
            same_types = [types[n] for n in (name, name + INITIAL) if n in types]
            for slot, expr in bound.head.items():
                if name in declared and slot[0] == "column":
                    continue
                wider = _wider(same_types[0].get(slot), expr.type)
                for slots in same_types:
                    if wider != slots.get(slot):
                        slots[slot] = wider
                        changed = True
    return types


def _wider(current: str | None, new: str) -> str:
    element, new_element = element_type(current or ""), element_type(new)
    if element is not None and new_element is not None:
        return set_type(_wider(element, new_element))
    if current is None or {current, new} == {NUMBER, FLOAT}:
        return new if current is None else FLOAT
    return current


def typed_head(  # noqa: PLR0913, PLR0917 - a rule and the sources of its types
    rule: Flat, bound: Bound, shape: Shape, types: Mapping[Slot, str], terms: Terms, places: Places
) -> Bound:
    """Return ``bound`` with each slot of the head in the relation's type.

    Raises ``DatalogError`` if a slot needs an explicit conversion, or has a type that its aggregate does not take.
    """
    _check_aggregates(rule, shape, types, places)
    head = {}
    for slot, expr in bound.head.items():
        converted = terms.as_type(expr, types[slot])
        if converted is None:
            p = slot[1]
            name = shape.columns[p] if shape.columns else HOLDS
            span = rule.head.args[p].span if rule.head.args else rule.head.span
            where = (
                f", see {places.describe(shape.place)}" if shape.place.line and shape.place != rule.head.span else ""
            )
            required, actual = datalog_type(types[slot]), datalog_type(expr.type)
            message = f"`{name}` of `{shape.relation}` is a {required}{where}, but here it is a {actual}"
            hint = "declare the relation with .decl, or convert the value with to_number, to_string or to_float"
            raise places.error("PARALAGG_DATALOG_TYPE", message, span, value=expr.type, hint=hint)
        head[slot] = converted
    return type(bound)(bound.atoms, bound.conditions, head)


def _check_aggregates(rule: Flat, shape: Shape, types: Mapping[Slot, str], places: Places) -> None:
    for (kind, p), type_ in types.items():
        definition = AGGREGATORS.get(shape.aggregates[p] or "") if shape.columns else None
        if definition is None or kind not in ("column", "total") or definition.accepts(type_):
            continue
        call = definition.name if "@" in shape.relation else f"${definition.name.upper()}"
        taken, functor = (
            ("number", "to_number") if definition.accepts is is_integral else ("number or float", "to_float")
        )
        message = f"{call} takes a {taken}, but here it gets a {datalog_type(type_)}"
        hint = f"convert the value with {functor}"
        raise places.error("PARALAGG_DATALOG_TYPE", message, rule.head.args[p].span, value=type_, hint=hint)
