"""Send the rows to apply, as *mirrors*, to the ranks that have edges from them.

If all edges lie at their targets, each rank then writes only to its own rows, compares with their best values, and
holds no ghosts. With few ranks this is less work than sending derived rows (measured in docs/architecture.md, "The
engine without Spark"). ``load.place_edges`` decides where edges lie. Rules read mirrored rows and never write them.
A message names a row by its id at the owner, and the receiver finds its own number of the row in a table made at load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.comm import by_sender
from mpi_backend.kernels import mirrors as kernel
from mpi_backend.kernels.messages import write_values

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import LoopState


class Mirrors:
    """The mirrors of the only relation of a loop. Collective to make."""

    def __init__(self, loop: LoopState, mirror: int) -> None:
        self._loop = loop
        [self._part] = loop.parts.values()
        self._mirror = loop.indexes[mirror].part
        self._mirror.grow()
        comm, count = loop.comm, len(self._part.keys)
        # For each rank: the numbers of its rows in our mirror (-1: we have no edge from it), and the rows it needs.
        self._places = loop.mirror_places
        needed = comm.exchange([np.packbits(p >= 0).astype(np.int64) for p in self._places])
        self._needed = np.stack([np.unpackbits(w.astype(np.uint8), count=count) for w in needed]).astype(np.bool_)
        self._needed[comm.rank] = False
        self._mirror.current = np.zeros(len(self._mirror.keys), np.int32)
        self.run(np.zeros(0, np.int32), np.zeros(0))  # sends no rows, but loads the kernels

    def run(self, rows: Array, votes: Array) -> Array:
        """Make ``rows`` of this rank current in the mirrors of all ranks. Return the votes of all ranks. Collective."""
        part, mirror, comm = self._part, self._mirror, self._loop.comm
        masked, traced, origin = any(part.shape.dependents), part.traced, int(part.origin[0])
        stride = 1 + part.value_words
        counts = np.zeros(comm.size, np.int64)
        kernel.count_mirrored(rows, self._needed, counts)
        total = int(counts.sum())
        flat, ids, places = np.empty(total * stride, np.int64), np.empty(total, np.int32), np.empty(total, np.int64)
        kernel.begin_rows(rows, self._needed, stride, flat, ids, places)
        write_values(ids, places, part.state.v, part.state.k, part.state.p, masked, False, flat)  # noqa: FBT003 - compiled
        if traced:
            flat[stride - 1 :: stride] = origin + ids.astype(np.int64)
        received, lengths, all_votes = comm.exchange_and_vote(flat, counts * stride, votes)
        into = mirror.state.v, mirror.state.k, mirror.state.f, mirror.state.p, masked, traced
        size = kernel.reflect(rows, self._places[comm.rank], part.state.v, part.state.k, *into, origin, mirror.current)
        for r, words in by_sender(received, lengths):
            size = kernel.unpack(words, stride, self._places[r], *into, mirror.current, size)
        mirror.size = size
        return all_votes
