"""Read inputs from files and write results: a rank reads its share of each source and writes its own partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from mpi_backend.names import result_folder
from mpi_backend.state.owner import Owner
from mpi_backend.state.rows import flatten
from mpi_backend.state.strings import Strings
from mpi_backend.state.types import ColumnBuilder, Table, to_arrow, type_of
from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
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
    """Read the rows in two passes: the first one counts them, so that the second one needs no room to grow."""
    paths = sorted(folder.glob(f"*.{form}"))
    count = 0
    for path in paths:
        for names, n in _sizes(path, form):
            if names != len(columns):
                raise UsageError(
                    "PARALAGG_INPUT_COLUMNS",
                    f"a file has {names} columns, but the plan reads {len(columns)}",
                    value=names,
                    place=str(path),
                )
            low, high = _share(n, rank, ranks)
            count += high - low
    own = (_own(batch, rank, ranks) for path in paths for batch in _batches(path, form))
    return _table(columns, own, count)


def _share(rows: int, rank: int, ranks: int) -> tuple[int, int]:
    return rows * rank // ranks, rows * (rank + 1) // ranks


def _own(batch: pa.RecordBatch, rank: int, ranks: int) -> pa.RecordBatch:
    low, high = _share(batch.num_rows, rank, ranks)
    return batch.slice(low, high - low)


def table_of(columns: Sequence[Declared], batches: Iterable[pa.RecordBatch]) -> Table:
    """Return the rows of all ``batches``. Their columns are ``columns``, in this order."""
    return _table(columns, batches, 0)


def _table(columns: Sequence[Declared], batches: Iterable[pa.RecordBatch], capacity: int) -> Table:
    builders = [ColumnBuilder(type_of(c.type), capacity) for c in columns]
    count = 0
    for batch in batches:
        count += batch.num_rows
        for n, builder in enumerate(builders):
            builder.add(batch.column(n))
    return Table(tuple(b.build() for b in builders), count)


def _sizes(path: Path, form: Format) -> Iterator[tuple[int, int]]:
    """Yield the columns and rows of each batch. Of Arrow files this reads no values."""
    if form == "arrow":
        with pa.memory_map(str(path)) as file:
            for batch in pa.ipc.open_stream(file):
                yield batch.num_columns, batch.num_rows
    else:
        for batch in _batches(path, form):
            yield batch.num_columns, batch.num_rows


def _batches(path: Path, form: Format) -> Iterator[pa.RecordBatch]:
    """Yield the batches. They are not mapped: pages of a mapped file count as memory of the process until its end."""
    if form == "arrow":
        with pa.OSFile(str(path)) as file:
            yield from pa.ipc.open_stream(file)
    else:
        import pyarrow.parquet as pq  # noqa: PLC0415 - slow to load, and Spark hands over Arrow

        yield from pq.ParquetFile(path).iter_batches(batch_size=1 << 20)


def write_result(
    relation: PlannedRelation, table: Table, folder: Path, form: Format, partitions: int, rank: int, ranks: int
) -> None:
    """Write each partition p of this rank to ``folder/<name>/part-<p>`` (``names.result_folder``)."""
    target = folder / result_folder(relation.name)
    target.mkdir(parents=True, exist_ok=True)
    for p, rows in _by_partition(relation, table, range(rank, partitions, ranks), partitions):
        batch = batch_of(relation, rows)
        path = target / f"part-{p:05d}.{form}"
        if form == "arrow":
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
        else:
            import pyarrow.parquet as pq  # noqa: PLC0415 - as above

            pq.write_table(pa.Table.from_batches([batch]), path)


def _by_partition(
    relation: PlannedRelation, table: Table, own: Sequence[int], partitions: int
) -> Iterator[tuple[int, Table]]:
    """Yield the rows of each of this rank's partitions; the first one has all rows that are only counted."""
    if relation.keys and not table.columns:
        yield from ((p, Table((), table.count if p == own[0] else 0)) for p in own)
        return
    buckets = _buckets(relation, table, partitions)
    for p in own:
        is_in = buckets == p
        yield p, Table(table.columns if is_in.all() else tuple(c.take(is_in) for c in table.columns), int(is_in.sum()))


def batch_of(relation: PlannedRelation, table: Table) -> pa.RecordBatch:
    """Return rows of a relation as an Arrow batch; rows that are only counted have no values."""
    names = [c.name for c in relation.keys] + [d.column.name for d in relation.dependents]
    if not names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * table.count, pa.struct([])))
    if not table.columns:
        return pa.RecordBatch.from_arrays([pa.nulls(table.count)] * len(names), names=names)
    return pa.RecordBatch.from_arrays([to_arrow(c) for c in table.columns], names=names)


def _buckets(relation: PlannedRelation, table: Table, partitions: int) -> Array:
    by = [table.columns[d] for d in relation.distribute_by]
    masked = any(c.nulls is not None for c in by)
    texts = next((c.texts for c in by if c.texts is not None), pa.array([], pa.string()))
    owner = Owner(range(len(by)), [c.type for c in by], partitions, 1)
    width = len(by)
    rows = flatten(by, table.count, masked=masked)
    return owner.buckets(rows, width + masked, width if masked else -1, Strings(texts), table.count)
