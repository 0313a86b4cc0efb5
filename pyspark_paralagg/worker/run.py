"""Evaluate a Plan in a Python worker, from the rows of the stream to the rows of a relation.

One task has all rows, or each task of a barrier stage is a rank with its share. The first row of the first task is no
row of the relation: its last column has the run's report, as JSON.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from mpi_backend.comm import Comm
    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.worker.stream import Layout

    Batches = Iterator[pa.RecordBatch]

REPORT = "paralagg report"
"""The name of the column with the report."""
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class Task:
    """What a worker evaluates: a Plan as JSON text, the stream's layout, and the relation whose columns it returns."""

    plan: str
    layout: Layout
    relation: str
    columns: tuple[str, ...]
    ansi: bool
    secret: bytes | None = None
    """What the ranks of a barrier stage know; None for one task."""

    def function(self) -> Callable[[Batches], Batches]:
        """Return the function for ``mapInArrow``. It is sent by value, so that an import that fails says its name."""
        task = self

        def run(batches: Batches) -> Batches:
            from pyspark_paralagg.worker.run import evaluate  # noqa: PLC0415 - in the worker

            yield from evaluate(task, batches)

        return run


def evaluate(task: Task, batches: Batches) -> Batches:
    """Yield the report in the first task, then this task's rows of the relation. Collective."""
    import pyarrow as pa  # noqa: PLC0415 - only workers need the engine

    from mpi_backend.load.files import batch_of  # noqa: PLC0415 - likewise
    from mpi_backend.loop.engine import run_plan  # noqa: PLC0415 - likewise
    from mpi_backend.run_report import gathered_report  # noqa: PLC0415 - likewise
    from pyspark_paralagg.plan.read import plan_from_json  # noqa: PLC0415 - likewise

    plan = plan_from_json(json.loads(task.plan))
    start = time.perf_counter()
    sources = _sources(plan, task.layout, batches)
    read_at = time.perf_counter()
    with _ranks(task.secret) as comm:
        run = run_plan(plan, sources, comm, ansi=task.ansi)
        run.seconds["load"] += read_at - start
        report = gathered_report(plan, run, comm)
    relation = next(r for s in plan.strata for r in s.relations if r.name == task.relation)
    rows = batch_of(relation, run.results[task.relation]).select(task.columns)
    schema = rows.schema.append(pa.field(REPORT, pa.string()))
    if comm.rank == 0:
        defaults = [pa.array([_default(f.type)], f.type) for f in rows.schema]
        yield pa.RecordBatch.from_arrays([*defaults, pa.array([json.dumps(report)])], schema=schema)
    for first in range(0, rows.num_rows, _BATCH_ROWS):
        part = rows.slice(first, _BATCH_ROWS)
        yield pa.RecordBatch.from_arrays([*part.columns, pa.nulls(part.num_rows, pa.string())], schema=schema)


@contextmanager
def _ranks(secret: bytes | None) -> Iterator[Comm]:
    """Yield this task's place among the ranks, and close their connections."""
    if secret is None:
        from mpi_backend.comm import SingleRank  # noqa: PLC0415 - only workers need the engine

        yield SingleRank()
        return
    from pyspark import BarrierTaskContext  # noqa: PLC0415 - likewise

    from mpi_backend.tcp import connect  # noqa: PLC0415 - likewise

    context = BarrierTaskContext.get()
    rank = context.partitionId()
    host = context.getTaskInfos()[rank].address.rsplit(":", 1)[0]
    with connect(rank, host, secret, context.allGather) as comm:
        yield comm


def _sources(plan: Plan, layout: Layout, batches: Batches) -> dict[int, Any]:
    from mpi_backend.state.types import ColumnBuilder, Table, type_of  # noqa: PLC0415 - only workers need the engine
    from pyspark_paralagg.worker.stream import by_source  # noqa: PLC0415 - likewise

    declared = {i.source: i.columns for i in plan.inputs if i.relation is None}
    builders = {s: [ColumnBuilder(type_of(c.type)) for c in columns] for s, columns in declared.items()}
    counts = dict.fromkeys(declared, 0)
    for source, columns in by_source(layout, batches):
        counts[source] += len(columns[0]) if columns else 0
        for builder, column in zip(builders[source], columns, strict=True):
            builder.add(column)
    return {s: Table(tuple(b.build() for b in own), counts[s]) for s, own in builders.items()}


def _default(arrow_type: pa.DataType) -> Any:  # noqa: ANN401 - a value of any type
    """Return any value of a type: Spark may have been promised that no value is null."""
    import pyarrow as pa  # noqa: PLC0415 - only workers need it

    if pa.types.is_string(arrow_type):
        return ""
    if pa.types.is_decimal(arrow_type):
        return Decimal(0)
    return 0 if pa.types.is_date(arrow_type) else pa.scalar(0).cast(arrow_type).as_py()
