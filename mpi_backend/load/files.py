"""Read inputs from files and write results: a rank reads its share of each source and writes its own partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from mpi_backend.names import result_folder
from mpi_backend.state.owner import Owner
from mpi_backend.state.rows import flatten
from mpi_backend.state.strings import Strings
from mpi_backend.state.types import Table, from_arrow, to_arrow, type_of
from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Literal

    from mpi_backend.kernels.compiler import Array
    from pyspark_paralagg.plan.plan import Plan, PlannedRelation
    from pyspark_paralagg.program.program import Column as Declared

    Format = Literal["arrow", "parquet"]


def read_sources(plan: Plan, folder: Path, form: Format, rank: int, ranks: int) -> dict[int, Table]:
    """Read this rank's rows of every source of the plan: ``folder/<source>/*``."""
    declared = {i.source: i.columns for i in plan.inputs if i.relation is None}
    return {n: _read_source(folder / str(n), columns, form, rank, ranks) for n, columns in declared.items()}


def _read_source(folder: Path, columns: Sequence[Declared], form: Format, rank: int, ranks: int) -> Table:
    pieces = []
    for path in sorted(folder.glob(f"*.{form}")):
        for batch in _stream(path) if form == "arrow" else _parquet(path):
            if batch.num_columns != len(columns):
                raise UsageError(
                    "PARALAGG_INPUT_COLUMNS",
                    f"a file has {batch.num_columns} columns, but the plan reads {len(columns)}",
                    value=batch.num_columns,
                    place=str(path),
                )
            low, high = batch.num_rows * rank // ranks, batch.num_rows * (rank + 1) // ranks
            if high > low:
                pieces.append(batch.slice(low, high - low))
    return table_of(columns, pieces)


def table_of(columns: Sequence[Declared], pieces: Sequence[pa.RecordBatch]) -> Table:
    """Return the rows of all ``pieces``. Their columns are ``columns``, in this order."""
    converted = []
    for n, c in enumerate(columns):
        column_type = type_of(c.type)
        arrays = [b.column(n) for b in pieces]
        converted.append(
            from_arrow(column_type, pa.chunked_array(arrays) if arrays else pa.array([], column_type.arrow))
        )
    return Table(tuple(converted), sum(b.num_rows for b in pieces))


def _stream(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as file:
        yield from pa.ipc.open_stream(file)


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to load, and Spark hands over Arrow

    yield from pq.ParquetFile(path).iter_batches(batch_size=1 << 20)


def write_result(
    relation: PlannedRelation, table: Table, folder: Path, form: Format, partitions: int, rank: int, ranks: int
) -> None:
    """Write each partition p of this rank to ``folder/<name>/part-<p>`` (``names.result_folder``)."""
    target = folder / result_folder(relation.name)
    target.mkdir(parents=True, exist_ok=True)
    buckets = _buckets(relation, table, partitions)
    for p in range(rank, partitions, ranks):
        is_in = buckets == p
        columns = table.columns if is_in.all() else tuple(c.take(is_in) for c in table.columns)
        batch = batch_of(relation, Table(columns, int(is_in.sum())))
        path = target / f"part-{p:05d}.{form}"
        if form == "arrow":
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
        else:
            import pyarrow.parquet as pq  # noqa: PLC0415 - as above

            pq.write_table(pa.Table.from_batches([batch]), path)


def batch_of(relation: PlannedRelation, table: Table) -> pa.RecordBatch:
    """Return rows of a relation as an Arrow batch."""
    if not table.columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * table.count, pa.struct([])))
    names = [c.name for c in relation.keys] + [d.column.name for d in relation.dependents]
    return pa.RecordBatch.from_arrays([to_arrow(c) for c in table.columns], names=names)


def _buckets(relation: PlannedRelation, table: Table, partitions: int) -> Array:
    by = [table.columns[d] for d in relation.distribute_by]
    masked = any(c.nulls is not None for c in by)
    texts = next((c.texts for c in by if c.texts is not None), pa.array([], pa.string()))
    owner = Owner(range(len(by)), [c.type for c in by], partitions, 1)
    width = len(by)
    rows = flatten(by, table.count, masked=masked)
    return owner.buckets(rows, width + masked, width if masked else -1, Strings(texts), table.count)
