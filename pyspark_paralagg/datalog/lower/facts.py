"""Extract the facts of a text: rules without a body whose head has constants only become rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower.terms import BOOLEAN, FLOAT, NUMBER, SYMBOL, datalog_type
from pyspark_paralagg.datalog.parse.syntax import Apply, Number, String
from pyspark_paralagg.program.aggregators import aggregator_named

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark_paralagg.datalog.lower.resolved import Row
    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Flat
    from pyspark_paralagg.datalog.resolve.shapes import Shape, Shapes

_LIMIT = 1 << 63


@dataclass(frozen=True)
class Fact:
    """A row, and the clause that it comes from."""

    row: Row
    flat: Flat

    def typed(self, types: Sequence[str], unsigned: Collection[str], places: Places, shape: Shape) -> Row:
        """Return the row in the types of its relation; raise if a value does not fit."""
        result: list[int | float | str | bool] = []
        for p, (value, type_) in enumerate(zip(self.row, types, strict=True)):
            value_type = SYMBOL if isinstance(value, str) else FLOAT if isinstance(value, float) else NUMBER
            if value_type == NUMBER and shape.columns[p] in unsigned and int(value) < 0:
                message = f"`{shape.columns[p]}` of `{shape.relation}` is unsigned, not {value!r}"
                raise places.error("PARALAGG_BAD_FACT", message, self.flat.head.args[p].span, value=value)
            if value_type == NUMBER and type_ == FLOAT:
                result.append(float(value))
            elif type_ == BOOLEAN and value in (0, 1):
                result.append(bool(value))
            elif value_type == type_ and (isinstance(value, str | float) or -_LIMIT <= value < _LIMIT):
                result.append(value)
            else:
                message = f"`{shape.columns[p]}` of `{shape.relation}` is a {datalog_type(type_)}, not {value!r}"
                raise places.error("PARALAGG_BAD_FACT", message, self.flat.head.args[p].span, value=value)
        return tuple(result) or (True,)


def constants(rules: Sequence[Flat], shapes: Shapes) -> tuple[dict[str, list[Fact]], tuple[Flat, ...]]:
    """Return the facts by relation, and the remaining rules.

    The facts of a relation with witnesses, or with ``min_by`` over a hidden column, stay rules: a row has no value for
    these columns.
    """
    facts: dict[str, list[Fact]] = {}
    remaining = []
    for rule in rules:
        shape = shapes.shapes[rule.head.relation]
        row = [_constant(a) for a in rule.head.args]
        if (
            rule.literals
            or None in row
            or any(aggregator_named(a).is_counted for a in shape.aggregates)
            or -1 in dict(shape.orders).values()
        ):
            remaining.append(rule)
        else:
            facts.setdefault(rule.head.relation, []).append(Fact(tuple(v for v in row if v is not None), rule))
    return facts, tuple(remaining)


def _constant(arg: object) -> int | float | str | None:
    if isinstance(arg, Apply) and arg.name == "neg" and isinstance(arg.args[0], Number):
        return -arg.args[0].value
    return arg.value if isinstance(arg, Number | String) else None
