"""Add ``$HOPS`` and ``$PATH`` to a recursion of a program, and check the ways: an engine of ``engines``.

The rows are those of the program without them. A way ends at its row and has one row a hop, and without its end it is
the way of the row before.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from campaigns.programs.engines import compared, interpreted_kernels, meaning
from mpi.staged import Staged

from pyspark_paralagg.api.routes import table_with_traces
from pyspark_paralagg.datalog.lower.dependencies import Dependencies
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.parse.syntax import TracedColumn
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import FixpointError, UnsupportedError, UsageError
from pyspark_paralagg.program.traced import traced

if TYPE_CHECKING:
    from campaigns.programs.engines import Rows
    from datalog.programs_random import Case

    from pyspark_paralagg.datalog.lower.resolved import Resolved

_ORDERS = ("min", "max")


def with_ways(case: Case) -> list[Rows]:
    """Check the ways to the rows of one relation. No rows to compare."""
    text = parse(case.text)
    plain = resolve_text(text, case.inputs)
    dice = random.Random(zlib.crc32(case.text.encode()))
    orders = dict(_traceable(plain))
    if not orders:
        raise UnsupportedError("PARALAGG_PATH", "no recursion is a set or has one minimum or maximum")
    name = dice.choice(sorted(orders))
    width = len(plain.shapes[name].columns)
    columns = (
        TracedColumn("legs", width, "HOPS", orders[name]),
        TracedColumn("way", width + 1, "PATH", orders[name]),
    )
    resolved = resolve_text(replace(text, traces={name: columns}), case.inputs)
    relation = resolved.program.relation(name)
    expected = meaning(case)[name]
    with interpreted_kernels():
        try:
            staged = Staged(resolved, case.facts, [name])
            staged.names = [traced(relation).result.name]
            rows = table_with_traces(*staged.local_tables().values(), relation, list(resolved.names(name))).to_pylist()
        except UsageError as problem:
            raise UnsupportedError(problem.code, problem.message.partition(":")[0]) from None
        except FixpointError as problem:
            if problem.code == "PARALAGG_PATH_LOST" and (relation.dependents or _has_nulls(expected)):
                return []
            raise
    legs, way = (t.name for t in resolved.traces[name])
    _check([(row, row.pop(legs), row.pop(way)) for row in rows], expected, [k.name for k in relation.keys])
    return []


def _traceable(resolved: Resolved) -> list[tuple[str, int | None]]:
    """The recursive relations whose best row is defined, each with the position of the column that decides."""
    needs, found = Dependencies(resolved.program), []
    for relation in resolved.program.relations:
        aggregates = resolved.shapes[relation.name].aggregates if "@" not in relation.name else ()
        deciding = [p for p, a in enumerate(aggregates) if a in _ORDERS]
        is_set = bool(aggregates) and not any(aggregates)
        if needs.recursive_rules(relation.name) and relation.keys and (is_set or len(deciding) == 1):
            found.append((relation.name, deciding[0] if deciding else None))
    return found


def _has_nulls(rows: list[tuple[Any, ...]]) -> bool:
    return any(value is None for row in rows for value in row)


def _check(
    found: list[tuple[dict[str, Any], int, list[Any]]], expected: list[tuple[Any, ...]], keys: list[str]
) -> None:
    if difference := compared([{"r": [tuple(row.values()) for row, _, _ in found]}], {"r": expected}):
        raise AssertionError(f"with ways, {difference}")
    ways = {tuple(row[k] for k in keys): way for row, _, way in found}
    for row, legs, way in found:
        key = tuple(row[k] for k in keys)
        steps = [tuple(step[k] for k in keys) if len(keys) > 1 else (step,) for step in way]
        if steps[-1] != key or len(steps) != legs + 1 or len(set(steps)) != len(steps):
            raise AssertionError(f"the way to {key} in {legs} hops is {steps}")
        if len(steps) > 1 and ways[steps[-2]] != way[:-1]:
            raise AssertionError(f"the way to {key} is {steps}, but that to {steps[-2]} is {ways[steps[-2]]}")
