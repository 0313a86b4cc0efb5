"""Adapt the MPI engine: ``mpi`` on ranks, ``local`` in one process; the same plan nodes, computed elsewhere.

The Plan is the one that the Spark engine would run. This module checks what needs no process: packages, launcher,
slots, staging directory, expressions. Its decisions are stored in the node's JSON as ``offload`` (`OffloadSpec.scala`).
When the result is requested, tasks write the inputs to files, the driver starts ``mpi_backend.launch``, and tasks read
the result.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi_backend.names import result_folder
from pyspark_paralagg.backends.spark import Builder
from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError, UsageError
from pyspark_paralagg.program.expr import Col
from pyspark_paralagg.program.program import Column
from pyspark_paralagg.session import conf, ranks
from pyspark_paralagg.session.attach import bridge
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mpi_backend.launch.preflight import Request
    from pyspark_paralagg.backends.protocol import Job
    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.program.program import Input

_WORD = 8


class OffloadBackend:
    """The backend ``mpi`` or ``local``. With ``is_tried`` (`auto`) it takes only large jobs."""

    def __init__(self, name: str, *, is_tried: bool = False) -> None:
        self.name = name
        self._is_tried = is_tried

    def obstacle(self, session: SparkSession) -> str | None:
        """Return the obstacle: Connect, or a missing or wrong jar."""
        if is_connect(session):
            return "a Spark Connect session has no local JVM that can start ranks"
        try:
            bridge(session)
        except EnvironmentProblem as problem:
            return problem.message + (f"; {problem.hint}" if problem.hint else "")
        return None

    def run(self, job: Job, reason: str) -> dict[str, DataFrame]:
        """Build the lazy result of each relation; nothing runs yet.

        Raises ``EnvironmentProblem`` or ``UsageError`` if ranks could not start, and ``UnsupportedError`` if an
        expression is not portable, or if ``auto`` finds the job too small to offload.
        """
        request = self._request(job.session)
        _check(request, job.session)
        offload = _Ranks(self.name, job.session, request, is_tried=self._is_tried)
        return Builder(job, reason, offload).build()

    def _request(self, session: SparkSession) -> Request:
        from mpi_backend.launch.preflight import Request  # noqa: PLC0415 - only offloading needs it
        from mpi_backend.machine import available_cores  # noqa: PLC0415 - only offloading needs it

        staging = conf.read(session, conf.MPI_STAGING_DIR)
        launcher = "local" if self.name == "local" else conf.read(session, conf.MPI_LAUNCHER)
        max_ranks = _slots(session) if launcher == "spark" else available_cores()
        return Request(
            launcher=launcher,
            ranks=1 if self.name == "local" else conf.read(session, conf.MPI_RANKS) or max(1, max_ranks),
            python=(sys.executable,),
            oversubscribe=conf.read(session, conf.MPI_OVERSUBSCRIBE),
            staging=staging and str(Path(staging.removeprefix("file://")).absolute()),
        )


@dataclass(frozen=True)
class _Ranks:
    """The offload of the Builder to ranks that can start."""

    backend: str
    session: SparkSession
    request: Request
    is_tried: bool

    def admit(self, plan: Plan) -> None:
        """Raise ``UnsupportedError`` if ``auto`` finds the whole job too small; single strata may be small."""
        if self.is_tried:
            _check_size(plan, self.session)

    def computed(self, plan: Plan, position: int, relation: str) -> dict[str, Any]:
        """Return the JSON for `OffloadSpec.scala`; raise ``UnsupportedError`` if an expression is not portable."""
        stratum_plan = _stratum_plan(plan, position)
        from mpi_backend.codegen.portable import check_portable  # noqa: PLC0415 - only this engine needs it

        check_portable(
            stratum_plan,
            place=f"backend={self.backend}",
            hint='use backend="spark", which runs any deterministic expression of Spark',
        )
        return {
            "backend": self.backend,
            "supervisor": [*self.request.python, "-m", "mpi_backend.launch"],
            "settings": {
                "launcher": self.request.launcher,
                "ranks": self.request.ranks,
                "python": list(self.request.python),
                "oversubscribe": self.request.oversubscribe,
                "sub_buckets": conf.read(self.session, conf.SUB_BUCKETS),
                "sub_bucket_rounds": conf.read(self.session, conf.SUB_BUCKET_ROUNDS),
                "split_ratio": conf.read(self.session, conf.SUB_BUCKET_SPLIT),
                "merge_share": conf.read(self.session, conf.SUB_BUCKET_MERGE),
                "heavy_parts": conf.read(self.session, conf.HEAVY_PARTS),
                "roll_over_rows": conf.read(self.session, conf.ROLL_OVER_ROWS),
                "env": ranks.environment(),
            },
            "plan": stratum_plan.to_json(),
            "result": result_folder(relation),
            "staging": self.request.staging,
            "fallback": conf.read(self.session, conf.MPI_FALLBACK),
        }


def _check(request: Request, session: SparkSession) -> None:
    """Check everything that is known before a process starts."""
    ranks.check(request)
    if request.launcher == "spark" and request.ranks > _slots(session):
        raise UsageError(
            "PARALAGG_MPI_TOO_MANY_RANKS",
            f"{request.ranks} ranks need as many slots at the same time, but the application has {_slots(session)}",
            value=request.ranks,
            place=conf.MPI_RANKS.name,
            hint="use fewer ranks, and set spark.dynamicAllocation.enabled=false",
        )
    master = session.sparkContext.master or ""
    if request.staging is None and request.launcher != "spark" and not master.startswith("local"):
        raise EnvironmentProblem(
            "PARALAGG_MPI_STAGING",
            f"executors run on other machines than the driver (spark.master is {master}), but no shared directory is "
            "set",
            value=None,
            place=conf.MPI_STAGING_DIR.name,
            hint=f"set a directory that driver, executors and ranks share, or set {conf.MPI_LAUNCHER.name}=spark, "
            "which needs none",
        )


def _slots(session: SparkSession) -> int:
    """Return the number of tasks that can run at once; 0 under dynamic allocation, where no gang can run."""
    return int(bridge(session).slots(session._jsparkSession))  # noqa: SLF001 - no public way to it


def _check_size(plan: Plan, session: SparkSession) -> None:
    cores = max(_slots(session), session.sparkContext.defaultParallelism)
    min_cores = conf.read(session, conf.OFFLOAD_MIN_CORES)
    min_rows = conf.read(session, conf.OFFLOAD_MIN_ROWS)
    rows = max(_rows(i) for i in plan.inputs)
    if rows < min_rows and cores < min_cores:
        raise UnsupportedError(
            "PARALAGG_OFFLOAD_SMALL",
            f"the input has about {rows:,} rows, fewer than {conf.OFFLOAD_MIN_ROWS.name}={min_rows:,}, and the {cores} "
            f"cores are fewer than {conf.OFFLOAD_MIN_CORES.name}={min_cores}",
            value=rows,
        )


def _rows(source: Input) -> int:
    """Estimate the rows of an input by bytes and columns; 0 if Spark does not know its size."""
    size = source.size_bytes
    return 0 if size is None else size // (_WORD * max(1, len(source.columns)))


def _stratum_plan(plan: Plan, position: int) -> Plan:
    """Return one stratum as a separate Plan, over inputs that Spark has already filtered and computed."""
    stratum = plan.strata[position]
    used = tuple(_computed_input(i) for i in plan.inputs if i.id in stratum.input_ids)
    return replace(plan, inputs=used, strata=(stratum,), reasons=(), narrower=())


def _computed_input(source: Input) -> Input:
    # Spark may compute nulls where its analyser promised none, for example below outer joins.
    columns = tuple(Column(f"c{n}", e.type) for n, e in enumerate(source.exprs))
    exprs = tuple(Col(c.name, c.type, c.nullable) for c in columns)
    return replace(source, source=source.id, columns=columns, exprs=exprs, filters=(), relation=None)
