"""Evaluate a Plan in this process, without ranks: Arrow rows in, Arrow tables out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from mpi_backend.comm import SingleRank
from mpi_backend.load.files import batch_of, table_of
from mpi_backend.loop.engine import run_plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mpi_backend.loop.engine import PlanProgress, Run
    from pyspark_paralagg.plan.plan import Plan


def run_alone(
    plan: Plan,
    sources: Mapping[int, Iterable[pa.RecordBatch]],
    names: Sequence[str],
    *,
    ansi: bool = True,
    counted: Collection[str] = (),
    progress: PlanProgress | None = None,
) -> tuple[dict[str, pa.Table], Run]:
    """Evaluate ``plan`` over the rows of each source; return the relations ``names`` in its columns, and the run.

    ``counted`` and ``progress`` are as in :func:`run_plan`.
    """
    columns = {i.source: i.columns for i in plan.inputs if i.relation is None}
    tables = {n: table_of(columns[n], batches) for n, batches in sources.items()}
    run = run_plan(plan, tables, SingleRank(), ansi=ansi, counted=counted, progress=progress)
    relations = {r.name: r for s in plan.strata for r in s.relations}
    return {n: pa.Table.from_batches([batch_of(relations[n], run.results[n])]) for n in names}, run
