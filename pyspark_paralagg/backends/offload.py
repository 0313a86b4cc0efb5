"""The adapters to the MPI engine: ``mpi`` on ranks, ``local`` in one process; the same nodes, computed elsewhere.

The Plan is the one that the Spark engine would run. What is checked here needs no process: packages, launcher, slots,
staging directory, expressions. What is decided here travels in the node's JSON as ``offload`` (`OffloadSpec.scala`):
when the result is wanted tasks write the inputs to files, the driver starts ``mpi_backend.launch``, tasks read the
result.
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
    """``mpi`` or ``local``. With ``is_tried``, only what is large enough is taken (`auto`)."""

    def __init__(self, name: str, *, is_tried: bool = False) -> None:
        self.name = name
        self._is_tried = is_tried

    def obstacle(self, session: SparkSession) -> str | None:
        """Connect, or a missing or wrong jar."""
        if is_connect(session):
            return "a Spark Connect session has no JVM beside it that could start ranks"
        try:
            bridge(session)
        except EnvironmentProblem as problem:
            return problem.message + (f"; {problem.hint}" if problem.hint else "")
        return None

    def run(self, job: Job, reason: str) -> dict[str, DataFrame]:
        """Builds the lazy result of each relation; nothing runs yet.

        Raises ``EnvironmentProblem`` or ``UsageError`` where ranks could not start, and ``UnsupportedError`` where an
        expression is not portable, or the job too small for who only tries.
        """
        job.refuse_settled("ranks")
        request = self._request(job.session)
        _check(request, job.session)
        return Builder(job, reason, _Ranks(self.name, job.session, request, is_tried=self._is_tried)).build()

    def _request(self, session: SparkSession) -> Request:
        from mpi_backend.launch.preflight import Request  # noqa: PLC0415 - needed by those who offload only
        from mpi_backend.machine import available_cores  # noqa: PLC0415 - needed by those who offload only

        staging = conf.read(session, conf.MPI_STAGING_DIR)
        launcher = "local" if self.name == "local" else conf.read(session, conf.MPI_LAUNCHER)
        most = _slots(session) if launcher == "spark" else available_cores()
        return Request(
            launcher=launcher,
            ranks=1 if self.name == "local" else conf.read(session, conf.MPI_RANKS) or max(1, most),
            python=(sys.executable,),
            oversubscribe=conf.read(session, conf.MPI_OVERSUBSCRIBE),
            staging=staging and str(Path(staging.removeprefix("file://")).absolute()),
        )


@dataclass(frozen=True)
class _Ranks:
    """What the Builder asks of ranks that can start."""

    backend: str
    session: SparkSession
    request: Request
    is_tried: bool

    def admit(self, plan: Plan) -> None:
        """``UnsupportedError`` where the job is too small for who only tries. A stratum of it may be."""
        if self.is_tried:
            _check_size(plan, self.session)

    def computed(self, plan: Plan, position: int, relation: str) -> dict[str, Any]:
        """What `OffloadSpec.scala` reads; ``UnsupportedError`` where an expression is not portable."""
        own = _own(plan, position)
        _check_portable(own, self.backend)
        return {
            "backend": self.backend,
            "supervisor": [*self.request.python, "-m", "mpi_backend.launch"],
            "settings": {
                "launcher": self.request.launcher,
                "ranks": self.request.ranks,
                "python": list(self.request.python),
                "oversubscribe": self.request.oversubscribe,
                "sub_buckets": conf.read(self.session, conf.SUB_BUCKETS),
                "env": {"PYTHONPATH": ranks.python_path()},
            },
            "plan": own.to_json(),
            "result": result_folder(relation),
            "staging": self.request.staging,
            "fallback": conf.read(self.session, conf.MPI_FALLBACK),
        }


def _check(request: Request, session: SparkSession) -> None:
    """All that can be known before anything runs."""
    ranks.check(request)
    if request.launcher == "spark" and request.ranks > _slots(session):
        raise UsageError(
            "PARALAGG_MPI_TOO_MANY_RANKS",
            f"{request.ranks} ranks need as many slots at the same moment, and the application has {_slots(session)}",
            value=request.ranks,
            place=conf.MPI_RANKS.name,
            hint="ask for fewer, and set spark.dynamicAllocation.enabled=false",
        )
    master = session.sparkContext.master or ""
    if request.staging is None and request.launcher != "spark" and not master.startswith("local"):
        raise EnvironmentProblem(
            "PARALAGG_MPI_STAGING",
            f"executors run on other machines than the driver (spark.master is {master}), and no directory is set that "
            "they share",
            value=None,
            place=conf.MPI_STAGING_DIR.name,
            hint="name a directory on a file system that driver, executors and ranks share, or set "
            f"{conf.MPI_LAUNCHER.name}=spark, which needs none",
        )


def _slots(session: SparkSession) -> int:
    """Tasks that may run at the same moment; 0 under dynamic allocation, where no gang can."""
    return int(bridge(session).slots(session._jsparkSession))  # noqa: SLF001 - no public way to it


def _check_portable(plan: Plan, backend: str) -> None:
    from mpi_backend.codegen.portable import unportable  # noqa: PLC0415 - needed by those who offload only

    what = unportable(plan)
    if what is not None:
        raise UnsupportedError(
            "PARALAGG_NOT_PORTABLE",
            f"outside of Spark nobody can compute {what}",
            value=what,
            place=f"backend={backend}",
            hint='backend="spark" runs any deterministic expression of Spark',
        )


def _check_size(plan: Plan, session: SparkSession) -> None:
    cores = max(_slots(session), session.sparkContext.defaultParallelism)
    enough = conf.read(session, conf.OFFLOAD_MIN_CORES)
    least = conf.read(session, conf.OFFLOAD_MIN_ROWS)
    rows = max(_rows(i) for i in plan.inputs)
    if rows < least and cores < enough:
        raise UnsupportedError(
            "PARALAGG_OFFLOAD_SMALL",
            f"some {rows:,} rows of input are less than {conf.OFFLOAD_MIN_ROWS.name}={least:,}, and {cores} cores less "
            f"than {conf.OFFLOAD_MIN_CORES.name}={enough}",
            value=rows,
        )


def _rows(source: Input) -> int:
    """By bytes and columns; 0 where Spark does not know."""
    size = source.size_bytes
    return 0 if size is None else size // (_WORD * max(1, len(source.columns)))


def _own(plan: Plan, position: int) -> Plan:
    """One stratum as a Plan of its own, over inputs that Spark has filtered and computed already."""
    stratum = plan.strata[position]
    used = tuple(_plain(i) for i in plan.inputs if i.id in stratum.input_ids)
    return replace(plan, inputs=used, strata=(stratum,), reasons=(), narrower=())


def _plain(source: Input) -> Input:
    # What Spark computes may be null where its analyser promised otherwise: outer joins below the input, for one.
    columns = tuple(Column(f"c{n}", e.type) for n, e in enumerate(source.exprs))
    exprs = tuple(Col(c.name, c.type, c.nullable) for c in columns)
    return replace(source, source=source.id, columns=columns, exprs=exprs, filters=(), relation=None)
