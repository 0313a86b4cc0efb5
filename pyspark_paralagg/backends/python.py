"""Adapt the engine on ranks to Spark's own Python workers: no jar, so also for Spark Connect.

The step is analysed in Python (``connect``) over Connect, and by the shim in a classic session. The Plan is the one
that the Spark engine would run. The result is a lazy ``mapInArrow`` over the inputs (``worker``): in one task, or in a
barrier stage with a rank a task. The report comes back beside the rows.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.backends.analysed import analysed, analyser_of
from pyspark_paralagg.backends.compiled import compiled_job
from pyspark_paralagg.backends.guards import guards
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.lowering.struct_type import struct_of
from pyspark_paralagg.program.expr import columns
from pyspark_paralagg.report.observed import observed
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.workers import obstacle, tasks_at_once
from pyspark_paralagg.worker.run import REPORT, Task
from pyspark_paralagg.worker.stream import Layout, stream_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.protocol import Job, Seed
    from pyspark_paralagg.plan.plan import Plan, Stratum
    from pyspark_paralagg.program.program import Input

_SECRET_BYTES = 32


class PythonBackend:
    """The engine in a Python worker of Spark."""

    name = "python"

    def obstacle(self, session: SparkSession) -> str | None:
        """Return what the workers lack: a package, its version, Python's version. The first call runs a small job."""
        return obstacle(session)

    def run(self, job: Job, reason: str) -> dict[str, DataFrame]:
        """Build the lazy result of each relation; no recursion runs yet.

        Raises what the Spark engine's adapter raises, and ``UnsupportedError`` ``PARALAGG_NOT_PORTABLE`` for an
        expression that only Spark can compute.
        """
        job.refuse_functors("the engine in Python workers")
        tasks = _tasks(job.session)
        start = time.perf_counter()
        found = analysed(job, analyser_of(job.session))
        checks = guards(job.assume, found.json)  # before the proof, which knows no wrong names
        compiled = compiled_job(job, found.json, found.relations)
        from mpi_backend.codegen.portable import check_portable  # noqa: PLC0415 - only this engine needs it

        check_portable(
            compiled.plan,
            place=f"backend={self.name}",
            hint="compute it before the recursion, as a column of the base or of a joined DataFrame",
            inputs=True,
        )
        sources = found.sources
        for source, with_check in checks.items():
            sources[source] = with_check(sources[source])
        frames = [*sources, *job.starts]
        ansi = bool(found.json["setting"]["ansi"])
        seconds = time.perf_counter() - start
        results = {}
        seeds = {s.relation.name: s for s in job.seeds}
        for result, name in job.outputs.items():
            plan = _needed(compiled.plan, name)
            described = {
                "plan": compiled.to_json(plan), "stratum": len(plan.strata) - 1, "relation": name, "reason": reason,
                "backend": self.name, "plan_seconds": seconds,
            }  # fmt: skip
            rows = _result(plan, frames, name, seeds.get(result), tasks, ansi=ansi)
            results[result] = observed(rows, REPORT, described)
        return results


def _tasks(session: SparkSession) -> int:
    """Return the number of tasks; a stage of more ranks than slots would end the Spark application (4.2, with AQE)."""
    tasks: int = conf.read(session, conf.PYTHON_TASKS)
    if tasks == 1:
        return 1
    at_once = tasks_at_once(session, tasks)
    if at_once < tasks:
        raise UsageError(
            "PARALAGG_MPI_TOO_MANY_RANKS",
            f"{tasks} ranks need as many slots at the same time, but only {at_once} of so many tasks ran at once",
            value=tasks,
            place=conf.PYTHON_TASKS.name,
            hint=f"set {conf.PYTHON_TASKS.name} to {at_once}, or add executors",
        )
    return tasks


def _needed(plan: Plan, relation: str) -> Plan:
    """Return the part of ``plan`` that computes ``relation``, with the columns of sources that it reads."""
    by_id = {i.id: i for i in plan.inputs}
    wanted, used = {relation}, set[int]()
    strata: list[Stratum] = []
    for stratum in reversed(plan.strata):
        if wanted.isdisjoint(r.name for r in stratum.relations):
            continue
        strata.insert(0, stratum)
        used |= stratum.input_ids
        wanted |= {name for i in stratum.input_ids if (name := by_id[i].relation) is not None}
    inputs = tuple(i for i in plan.inputs if i.id in used)
    return replace(plan, inputs=inputs, strata=tuple(strata), narrower=())


def _result(  # noqa: PLR0913 - all parts of a task
    plan: Plan, frames: list[DataFrame], name: str, seed: Seed | None, tasks: int, *, ansi: bool
) -> DataFrame:
    """Return the rows of relation ``name``, that of ``seed`` if any, and the report, as ``evaluate`` yields them."""
    planned = next(r for s in plan.strata for r in s.relations if r.name == name)
    own = {} if seed is None else {c.name: c.nullable for c in seed.relation.columns}
    columns = [replace(c, nullable=own.get(c.name, True)) for c in planned.columns]
    read = _read_positions(plan.inputs)
    inputs = tuple(
        i if i.relation is not None else replace(i, columns=tuple(i.columns[p] for p in read[i.source]))
        for i in plan.inputs
    )
    layout = Layout.of({i.source: [c.type for c in i.columns] for i in inputs if i.relation is None})
    schema = struct_of([(c.name, c.type) for c in columns], None if seed is None else seed.base)
    for field, c in zip(schema.fields, columns, strict=True):
        field.nullable = c.nullable
    schema = schema.add(REPORT, "string")
    plan_text = json.dumps(replace(plan, inputs=inputs, reasons=()).to_json())
    secret = None if tasks == 1 else secrets.token_bytes(_SECRET_BYTES)
    task = Task(plan_text, layout, name, tuple(c.name for c in columns), ansi, secret)
    widths = {i.source: len(i.columns) for i in plan.inputs}
    stream = stream_of(layout, {s: (frames[s], widths[s], positions) for s, positions in read.items()}, tasks)
    if tasks == 1:
        return stream.mapInArrow(task.function(), schema)
    # A barrier stage has exactly the ranks: Spark refuses a union, a limit or another task in the same stage.
    return stream.mapInArrow(task.function(), schema, barrier=True).repartition(tasks)


def _read_positions(inputs: tuple[Input, ...]) -> dict[int, list[int]]:
    """Return the columns that ``inputs`` read of each source; of rows that count once if they are equal, all."""
    read: dict[int, set[int]] = {}
    for i in inputs:
        if i.relation is None:
            names = frozenset[str]().union(*map(columns, (*i.exprs, *i.filters)))
            own = {p for p, c in enumerate(i.columns) if i.is_set or c.name in names}
            read.setdefault(i.source, set()).update(own)
    return {source: sorted(positions) for source, positions in read.items()}
