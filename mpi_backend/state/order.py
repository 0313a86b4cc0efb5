"""Order rows by their values, as Spark does: nulls first, NaN last; and number them in this order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mpi_backend.state.gathered import gathered
from mpi_backend.state.types import Column, Table, to_arrow
from pyspark_paralagg.program.aggregators import order_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.comm import Comm


def row_order(columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Return the positions of the rows in the order of their values, column by column.

    Lists come last: they count only where all other values of two rows are equal.
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to load, and rarely needed

    keys: dict[str, pa.Array | pa.ChunkedArray] = {}
    for n, column in enumerate(columns):
        if pa.types.is_nested(column.type):
            continue
        if column.null_count:
            keys[f"{n} is there"] = pc.is_valid(column)
        if pa.types.is_floating(column.type):
            keys[f"{n} is NaN"] = pc.is_nan(column)
        keys[str(n)] = column
    lists = [c for c in columns if pa.types.is_list(c.type)]
    rows = len(columns[0]) if columns else 0
    if lists and (not keys or pa.table(keys).group_by([*keys]).aggregate([]).num_rows < rows):
        keys |= {f"list {n}": _list_ranks(column) for n, column in enumerate(lists)}
    return pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])


def _list_ranks(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the position of each list among all lists in Spark's order; a null is the first."""
    values = [None if v is None else tuple(map(_sort_key, v)) for v in column.to_pylist()]
    ranks = {v: n for n, v in enumerate(sorted({v for v in values if v is not None}), 1)}
    return pa.array([0 if v is None else ranks[v] for v in values], pa.int64())


def _sort_key(value: Any) -> Any:  # noqa: ANN401 - an element of any type
    if isinstance(value, dict):
        return tuple(map(_sort_key, value.values()))
    return (False, False) if value is None else (True, order_key(value))


def numbered(table: Table, comm: Comm) -> Table:
    """Return the rows with the number of each among those of all ranks, from 0 on, as the last column. Collective."""
    *keys, last = table.columns
    numbers = np.arange(table.count)
    if keys:
        parts = gathered([to_arrow(key) for key in keys], comm)
        rows, before = pa.concat_tables(parts), sum(part.num_rows for part in parts[: comm.rank])
        numbers = np.empty(rows.num_rows, np.int64)
        numbers[np.asarray(row_order(rows.columns))] = np.arange(rows.num_rows)
        numbers = numbers[before : before + table.count]
    return Table((*keys, Column(last.type, numbers)), table.count)
