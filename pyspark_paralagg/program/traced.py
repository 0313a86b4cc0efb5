"""Name the relations and columns that compute the hops and paths of a relation, and check what they follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.aggregators import BY_ORDER, MaxBy, MinBy
from pyspark_paralagg.program.names import added_name, fresh_column
from pyspark_paralagg.program.program import Column, Dependent, Relation
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.program.trace import Hops, Path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.program.trace import Trace

HOPS_TYPE = "bigint"
MAX_ROWS = (1 << 31) - 1
"""The most elements of an array of Spark."""
_ORDERS = ("min", "max")


@dataclass(frozen=True)
class Traced:
    """The relation that computes the traces of another one, ``result``, and the names of its columns.

    Hops decide among equally good rows, then the parent's keys one after the other, then the columns of the step.
    """

    result: Relation
    hops: str
    parents: tuple[str, ...]


def step_columns(relation: Relation) -> tuple[str, ...]:
    """Return the columns that only the step has, and that a path shows."""
    own = {c.name for c in relation.columns}
    paths = [t.kind for t in relation.traces if isinstance(t.kind, Path)]
    return tuple(dict.fromkeys(c for path in paths for c in path.columns if c not in own))


def trace_type(kind: Hops | Path, keys: Sequence[str], types: Mapping[str, str]) -> str:
    """Return the Spark type of a traced column; ``types`` are those of the columns that a path may show.

    >>> trace_type(Path("d"), ["x", "y"], {"x": "bigint", "y": "string"})
    'array<struct<x:bigint,y:string>>'
    """
    if isinstance(kind, Hops):
        return HOPS_TYPE
    shown = kind.columns or keys
    fields = ",".join(f"{c if c.isascii() and c.isidentifier() else quoted(c)}:{types[c]}" for c in shown)
    return f"array<{types[shown[0]] if len(shown) == 1 else f'struct<{fields}>'}>"


def traced(relation: Relation, step_types: Sequence[str] = ()) -> Traced:
    """Return what computes the traces of ``relation``, which has at least one.

    ``step_types`` are the types of ``step_columns``; who needs only names may leave them out.

    >>> from pyspark_paralagg.program.trace import Trace
    >>> relation = Relation("dist", (Column("node", "bigint"),), (Dependent(Column("d", "bigint"), "min"),), 0,
    ...                     traces=(Trace("route", Path("d")),))
    >>> [c.name for c in traced(relation).result.columns]
    ['node', 'd', 'route_hops', 'route_from_node']
    """
    names = [c.name for c in (*relation.columns, *relation.supplied)] + [t.name for t in relation.traces]
    path = next((t.name for t in relation.traces if isinstance(t.kind, Path)), None)
    own = next((t.name for t in relation.traces if isinstance(t.kind, Hops)), None)
    hops = own or fresh_column(f"{path}_hops", names)
    keys = relation.keys if path is not None else ()
    parents = [Column(fresh_column(f"{path}_from_{key.name}", names), key.type) for key in keys]
    names_of_step = step_columns(relation)
    types = step_types or [HOPS_TYPE] * len(names_of_step)
    shown = [Column(name, type_) for name, type_ in zip(names_of_step, types, strict=True)]
    order = relation.traces[0].kind.order
    dependents = list(relation.dependents)
    by = next((c.aggregator for c in BY_ORDER.values() for d in dependents if _decides(d, order, c)), "min")
    for column in (Column(hops, HOPS_TYPE), *parents, *shown):
        dependents.append(Dependent(column, by, order))
        by, order = MinBy.aggregator, column.name
    name = added_name(relation.name, path or own)
    result = replace(relation, name=name, dependents=tuple(dependents), traces=(), follows=relation.name)
    return Traced(result, hops, tuple(c.name for c in parents))


def _decides(d: Dependent, order: str | None, by: type[MinBy | MaxBy]) -> bool:
    return d.column.name == order and d.aggregator == by.order_aggregator


def check_traces(relation: Relation, place: str) -> None:
    """Raise ``UsageError`` ``PARALAGG_PATH`` if the traces of ``relation`` are not defined over its columns."""
    for kind in (t.kind for t in relation.traces):
        names: tuple[object, ...] = (kind.order or "", *(kind.columns if isinstance(kind, Path) else ()))
        for name in names:
            if not isinstance(name, str):
                hint = 'name columns: ra.path("dist", columns=["line"])'
                raise _wrong(f"{kind!r} takes names of columns, not {name!r}", name, place, hint)
    orders = {t.kind.order for t in relation.traces}
    if len(orders) > 1:
        shown = ", ".join(map(repr, sorted(orders, key=str)))
        raise _wrong("hops and paths of one relation follow several columns", shown, place, "use one order for all")
    for trace in relation.traces:
        _check_order(trace, relation, place)
        if isinstance(trace.kind, Path):
            _check_path(trace.name, trace.kind, relation, place)


def _check_order(trace: Trace, relation: Relation, place: str) -> None:
    order = trace.kind.order
    aggregators = {d.column.name: d.aggregator for d in relation.dependents}
    word = "hops" if isinstance(trace.kind, Hops) else "path"
    hint = (
        f'aggregate a column with "min" or "max", and name it: ra.{word}("{order or next(iter(aggregators), "dist")}")'
    )
    if order is None and aggregators:
        raise _wrong(f"{trace.kind!r} of {trace.name!r} names no column that decides", trace.name, place, hint)
    if order is not None and aggregators.get(order) not in _ORDERS:
        raise _wrong(f"{trace.kind!r} of {trace.name!r} follows {order!r}, no minimum or maximum", order, place, hint)


def _check_path(name: str, path: Path, relation: Relation, place: str) -> None:
    limit = path.limit
    is_number = isinstance(limit, int) and not isinstance(limit, bool)
    if limit is not None and not (is_number and 1 <= limit <= MAX_ROWS):
        hint = f"set it to a number of rows from 1 to {MAX_ROWS:,}"
        raise _wrong(f"the path {name!r} has limit={limit!r}", limit, place, hint)
    if not relation.keys:
        raise _wrong("a relation without keys has no paths", relation.name, place, "name its keys")


def _wrong(message: str, value: object, place: str, hint: str) -> UsageError:
    return UsageError("PARALAGG_PATH", message, value=value, place=place, hint=hint)
