"""Send Arrow columns to all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.comm import Comm


def gathered(columns: Sequence[pa.Array], comm: Comm) -> list[pa.Table]:
    """Return the columns of each rank, as one table for each rank. Collective."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch(list(columns), [str(n) for n in range(len(columns))])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return [pa.ipc.open_stream(data).read_all() for data in comm.allgather_bytes(bytes(sink.getvalue()))]
