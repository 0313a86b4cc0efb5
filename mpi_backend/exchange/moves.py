"""Send the rows of a relation to the ranks of their sub-buckets after the map of sub-buckets has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.state.loop_state import Rows
from mpi_backend.state.moved_rows import put_rows, take_rows

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.buckets_by_id import BucketsById
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.relation_part import RelationPart


def move_rows(loop: LoopState, part: RelationPart, places: BucketsById) -> None:
    """Send those rows of ``part`` whose rank has changed, and its base and initial rows. Collective.

    A ghost keeps the best value sent, since the owner's row has moved with it.
    """
    owner = loop.owners[part.name]
    ids, ranks = places.leaving(part, owner, loop.comm)
    put_rows(part, _send(loop, take_rows(part, ids), ranks))
    for starts in (loop.base, loop.initial):
        if part.name in starts:
            rows = starts[part.name]
            starts[part.name] = _move_start(loop, part, rows, places.ranks(rows.ids, owner))
    part.base_snapshot = None
    part.grow()
    _assign_ghosts(loop, part)
    for index in loop.indexes.values():
        if index.part is part:
            index.rebuild()


def _move_start(loop: LoopState, part: RelationPart, rows: Rows, ranks: Array) -> Rows:
    """Send base or initial rows to their ranks. Return those of this rank."""
    width = part.shape.key_words
    values = rows.words[rows.at :].reshape(len(rows.ids), rows.stride)
    is_leaving = ranks != loop.comm.rank
    table = np.concatenate([part.keys.keys[rows.ids[is_leaving]], values[is_leaving]], axis=1)
    received = _send(loop, table, ranks[is_leaving])
    ids = part.keys.add(np.ascontiguousarray(received[:, :width]).ravel(), count=len(received))
    words = np.concatenate([values[~is_leaving], received[:, width:]]).ravel()
    return Rows(np.concatenate([rows.ids[~is_leaving], ids]), words, 0, rows.stride)


def _assign_ghosts(loop: LoopState, part: RelationPart) -> None:
    """Set the ranks that now own the ghosts."""
    count, width = len(part.ghosts), part.shape.key_words
    mask_at = width - 1 if part.shape.has_null_keys else -1
    keys = np.ascontiguousarray(part.ghosts.keys[:count]).ravel()
    part.ghost_owner[:count] = loop.owners[part.name].ranks(keys, width, mask_at, loop.strings, count)


def _send(loop: LoopState, table: Array, ranks: Array) -> Array:
    """Send each row to its rank. Return the received rows."""
    messages = [table[ranks == r].ravel() for r in range(loop.comm.size)]
    return np.concatenate(loop.comm.exchange(messages)).reshape(-1, table.shape[1])
