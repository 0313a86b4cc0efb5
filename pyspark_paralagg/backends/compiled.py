"""Compile an analysed job with the options of its call and of its session: the same Plan for all engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_paralagg.backends.protocol import Job
    from pyspark_paralagg.compile.compile_step import CompiledStep
    from pyspark_paralagg.program.program import Relation


def compiled_job(
    job: Job, step_json: dict[str, Any], relations: Sequence[Relation], *, packs: bool = False
) -> CompiledStep:
    """Return the Plan of ``job``; ``relations`` have their analysed aggregators. Raises as ``compile_step``."""
    from pyspark_paralagg.compile.compile_step import compile_step  # noqa: PLC0415 - only planning needs it

    return compile_step(
        step_json,
        relations,
        conf.read(job.session, conf.BROADCAST_MAX_BYTES),
        job.join_order,
        None if job.question is None else job.question.rewrite,
        packs=packs,
        present=_present(job),
        name=job.name,
        mode=job.mode,
        assume=job.assume,
        max_iterations=job.max_iterations,
        on_limit=job.on_limit,
        tolerance=job.tolerance,
        climb_limit=conf.read(job.session, conf.CLIMB_MAX_ITERATIONS),
        max_rows=job.max_rows,
    )


def _present(job: Job) -> dict[int, list[str]]:
    """Return the columns without nulls of each base and of initial rows, as Spark's analysis knows them."""
    starts = [(n, rows) for s in job.seeds for n, rows in ((s.relation.base, s.base), (s.relation.initial, s.initial))]
    return {
        number: [field.name for field in rows.schema.fields if not field.nullable]
        for number, rows in starts
        if number is not None and rows is not None
    }
