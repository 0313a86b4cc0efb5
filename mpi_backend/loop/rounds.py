"""Move the rows of a relation between its lists and accumulators, between two rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import lists
from mpi_backend.kernels.flags import PRESENT, SETTLED
from mpi_backend.state.types import type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.relation_part import RelationPart


def take(p: RelationPart) -> None:
    """Make the list of changed rows the current one."""
    p.state.sort_changed(len(p.keys))
    p.current, p.size = p.state.take(p.current)


def take_current(p: RelationPart) -> None:
    """Make the list of changed rows the current one, and mark these rows as the delta."""
    lists.unmark_delta(p.state.f, p.current[: p.size])
    take(p)
    ids = p.current[: p.size]
    lists.mark_delta(p.state.f, ids)
    p.rows += lists.count_new(p.state.f, ids)


def settle_current(p: RelationPart) -> None:
    """Mark the current rows as settled. None is current then."""
    ids = p.current[: p.size]
    lists.unmark_delta(p.state.f, ids)
    p.state.f[ids] |= np.uint8(SETTLED)
    p.size = 0


def read_all(p: RelationPart) -> None:
    """Make every row current. The state keeps its list, which has all rows."""
    p.current = p.state.dirty.copy()
    p.size = p.rows = len(p.current)


def swap_delta(p: RelationPart) -> None:
    """Make the pending rows the delta of the next application. Reuse the old delta's arrays for ``pending``."""
    assert p.delta is not None  # noqa: S101 - for the type checker
    p.delta, p.pending = p.pending, p.delta
    p.pending.clear()


def begin(p: RelationPart, put_base: Callable[[], None]) -> None:
    """Set ``pending`` to the base rows (iterated relations). If there are many, copy a snapshot in later rounds."""
    if p.base_snapshot is not None and p.base_snapshot.capacity == p.pending.capacity:
        p.pending.copy_from(p.base_snapshot)
        return
    p.pending.clear()
    put_base()
    if lists.SCAN_FACTOR * len(p.pending.dirty) > len(p.keys):
        p.base_snapshot = p.pending.copy()


def replace(p: RelationPart) -> tuple[int, float]:
    """Make the pending rows the rows (iterated relations). Return the count of changes, and Σ|Δ| of sum columns."""
    old, new = p.state, p.pending
    kinds, out = _kinds(p), np.zeros(3)
    if kinds.tolist() == [[1.0, 1.0, 1.0]] and not len(new.k) and len(new.dirty) == p.rows == len(p.keys):
        lists.differences_of_all(new.v[0, : p.rows].view(np.float64), old.v[0, : p.rows].view(np.float64), out)
    else:
        lists.differences(new.dirty, new.v, new.k, old.v, old.k, old.f, kinds, out)
    changed, difference = int(out[1]), float(out[2])
    if p.rows > out[0]:  # rows that exist no more: they differ from nothing
        gone = old.dirty[new.f[old.dirty] & PRESENT == 0]
        lists.differences(gone, old.v, old.k, new.v, new.k, new.f, kinds, out)
        changed, difference = changed + len(gone), difference + float(out[2])
    p.state, p.pending = new, old
    read_all(p)
    return changed, difference


def _kinds(p: RelationPart) -> Array:
    """Return for each column whether it is a fraction, whether it is a sum, and the divisor of its words."""
    types = [type_of(d.column.type) for d in p.planned.dependents]
    rows = [
        (t.kind == "fraction", d.definition.is_sum, 10.0**t.scale)
        for t, d in zip(types, p.planned.dependents, strict=True)
    ]
    return np.array(rows, np.float64).reshape(len(rows), 3)
