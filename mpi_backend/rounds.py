"""What happens to a relation between two rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import lists
from mpi_backend.kernels.aggregates import PRESENT, is_added
from mpi_backend.types import type_of

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.part import Part
    from mpi_backend.types import Type


def take(p: Part) -> None:
    """The list of what changed becomes the current one."""
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


def replace(p: Part) -> tuple[int, float]:
    """The pending rows become the rows (iterated): how many changed, and Σ|Δ| of the columns that are added up."""
    old, fresh = p.state, p.pending
    ids = fresh.dirty
    was = (old.f[ids] & PRESENT) != 0
    same = was.copy()
    difference = 0.0
    for j, d in enumerate(p.of.dependents):
        now_null = fresh.k[j, ids] == 0 if len(fresh.k) and p.shape.dependents[j] else np.zeros(len(ids), np.bool_)
        was_null = ~was | (old.k[j, ids] == 0 if len(old.k) and p.shape.dependents[j] else False)
        now, before = fresh.v[j, ids], old.v[j, ids]
        of = type_of(d.column.type)
        differs = (now_null != was_null) | (~now_null & ~_equal(of, now, before))
        same &= ~differs
        if is_added(d):
            a = np.where(now_null, 0.0, _numbers(of, now))
            b = np.where(was_null, 0.0, _numbers(of, before))
            difference += float(np.abs(a - b)[differs].sum())
    kept = int(was.sum())
    changed = int((~same).sum()) + p.rows - kept
    p.state, p.pending = fresh, old
    old.clear()
    read_all(p)
    return changed, difference


def _equal(of: Type, a: Array, b: Array) -> Array:
    if of.kind != "fraction":
        same: Array = a == b
        return same
    x, y = np.ascontiguousarray(a).view(np.float64), np.ascontiguousarray(b).view(np.float64)
    return (x == y) | (np.isnan(x) & np.isnan(y))


def _numbers(of: Type, words: Array) -> Array:
    if of.kind == "fraction":
        return np.ascontiguousarray(words).view(np.float64)
    return words.astype(np.float64) / 10.0**of.scale
