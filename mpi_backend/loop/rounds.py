"""What happens to a relation between two rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.codegen.aggregates import is_added
from mpi_backend.kernels import lists
from mpi_backend.state.types import type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.relation_part import Part


def take(p: Part) -> None:
    """The list of what changed becomes the current one."""
    p.state.ascend(len(p.keys))
    p.current, p.size = p.state.take(p.current)


def take_current(p: Part) -> None:
    """Likewise, and its rows are marked as the delta."""
    lists.unmark_delta(p.state.f, p.current[: p.size])
    take(p)
    ids = p.current[: p.size]
    lists.mark_delta(p.state.f, ids)
    p.rows += lists.count_new(p.state.f, ids)


def read_all(p: Part) -> None:
    """The next application reads every row; the state's list stays, it says which rows there are."""
    p.current = p.state.dirty.copy()
    p.size = p.rows = len(p.current)


def swap_delta(p: Part) -> None:
    """What was pending is the delta that the next application reads; the old delta's room is used again."""
    assert p.delta is not None  # noqa: S101 - for the type checker
    p.delta, p.pending = p.pending, p.delta
    p.pending.clear()


def begin(p: Part, put_base: Callable[[], None]) -> None:
    """``pending`` has the base rows and nothing else (iterated); where these are many, they are copied from then on."""
    if p.begun is not None and p.begun.capacity == p.pending.capacity:
        p.pending.become(p.begun)
        return
    p.pending.clear()
    put_base()
    if lists.MANY * len(p.pending.dirty) > len(p.keys):
        p.begun = p.pending.twin()


def replace(p: Part) -> tuple[int, float]:
    """The pending rows become the rows (iterated): how many changed, and Σ|Δ| of the columns that are added up."""
    old, fresh = p.state, p.pending
    kinds, out = _kinds(p), np.zeros(3)
    if kinds.tolist() == [[1.0, 1.0, 1.0]] and not len(fresh.k) and len(fresh.dirty) == p.rows == len(p.keys):
        lists.differences_of_all(fresh.v[0, : p.rows].view(np.float64), old.v[0, : p.rows].view(np.float64), out)
    else:
        lists.differences(fresh.dirty, fresh.v, fresh.k, old.v, old.k, old.f, kinds, out)
    changed = int(out[1]) + p.rows - int(out[0])
    p.state, p.pending = fresh, old
    read_all(p)
    return changed, float(out[2])


def _kinds(p: Part) -> Array:
    """Of each column: whether it is a fraction, whether it is added up, by what its words are divided."""
    types = [type_of(d.column.type) for d in p.of.dependents]
    rows = [(t.kind == "fraction", is_added(d), 10.0**t.scale) for t, d in zip(types, p.of.dependents, strict=True)]
    return np.array(rows, np.float64).reshape(len(rows), 3)
