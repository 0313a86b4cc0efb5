"""Take rows out of a relation's part, with all that the loop knows of them, and put received ones in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels.flags import COUNTED, IN_DELTA

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.relation_part import Accumulator, RelationPart


def take_rows(part: RelationPart, ids: Array) -> Array:
    """Remove rows between two rounds or passes, when nothing is pending. Their keys keep their ids.

    Return a table with a row for each: key, then values, nulls and flags of each accumulator.
    """
    columns = [part.keys.keys[ids]]
    for a in _accumulators(part):
        columns += [a.v[:, ids].T, a.k[:, ids].T.astype(np.int64), a.f[ids].astype(np.int64)[:, None]]
    part.rows -= int(np.count_nonzero(part.state.f[ids] & COUNTED))
    for a in _accumulators(part):
        a.remove(ids)
    _list_current(part, part.current[: part.size])
    return np.concatenate(columns, axis=1)


def put_rows(part: RelationPart, table: Array) -> None:
    """Add the rows of a table that ``take_rows`` has made on other ranks."""
    at = part.shape.key_words
    ids = part.keys.add(np.ascontiguousarray(table[:, :at]).ravel(), count=len(table))
    part.grow()
    for a in _accumulators(part):
        values, nulls = len(a.v), len(a.k)
        a.v[:, ids] = table[:, at : at + values].T
        a.k[:, ids] = table[:, at + values : at + values + nulls].T
        at += values + nulls + 1
        a.put_flags(ids, table[:, at - 1].astype(np.uint8))
    part.rows += int(np.count_nonzero(part.state.f[ids] & COUNTED))
    _list_current(part, np.concatenate([part.current[: part.size], ids]))


def _list_current(part: RelationPart, ids: Array) -> None:
    """Make those of these rows current that are. A pass in place has no current rows between two passes."""
    if part.facts.is_iterated:
        part.current = part.state.dirty.copy()
        part.rows = part.size = len(part.current)
    else:
        part.current = ids[part.state.f[ids] & IN_DELTA != 0]
        part.size = len(part.current)


def _accumulators(part: RelationPart) -> list[Accumulator]:
    return [part.state] if part.delta is None else [part.state, part.delta]
