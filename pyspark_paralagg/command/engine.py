"""The engine of ``mpi_backend``: in this process, or on ranks that a supervisor starts and watches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import pyarrow as pa

from mpi_backend.launch.clear import clear
from mpi_backend.launch.process_tree import RUN_VARIABLE, kill_tree
from mpi_backend.names import result_folder
from pyspark_paralagg.command.supervised import ended_silently, lines_of
from pyspark_paralagg.errors import ParalaggError, error_of_rank
from pyspark_paralagg.report.run_progress import RunProgress
from pyspark_paralagg.session.ranks import python_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from mpi_backend.launch.preflight import Request
    from mpi_backend.loop.stats import Counts
    from pyspark_paralagg.plan.plan import Plan

    Sources = Mapping[int, Iterator[pa.RecordBatch]]
    Hear = Callable[[RunProgress], None]

_PATIENCE_SECONDS = 20
"""The supervisor ends its ranks in less."""


@dataclass(frozen=True)
class Found:
    """Rows of the relations that were wanted, in the Plan's columns, and what is reported of the run."""

    tables: Mapping[str, pa.Table]
    report: Mapping[str, Any]


def run_here(plan: Plan, sources: Sources, names: Sequence[str], hear: Hear, *, ansi: bool) -> Found:
    """In this process; ``hear`` is told of iterations. Raises what the engine raises."""
    from mpi_backend.comm import Alone  # noqa: PLC0415 - Numba is slow to load
    from mpi_backend.load.files import batch_of, table_of  # noqa: PLC0415 - likewise
    from mpi_backend.loop.engine import run_plan  # noqa: PLC0415 - likewise

    columns = {i.source: i.columns for i in plan.inputs if i.relation is None}
    tables = {n: table_of(columns[n], list(batches)) for n, batches in sources.items()}
    began = time.perf_counter()

    def told(relation: str, counts: Counts) -> None:
        hear(_progress(relation, "local", counts._asdict(), began))

    run = run_plan(plan, tables, Alone(), ansi=ansi, progress=told)
    relations = {r.name: r for s in plan.strata for r in s.relations}
    found = {n: pa.Table.from_batches([batch_of(relations[n], run.results[n])]) for n in names}
    return Found(found, {"strata": run.strata, "per_iteration": run.per_iteration, "bytes": run.bytes})


def run_on_ranks(  # noqa: PLR0913, PLR0917 - what a SPEC is made of
    plan: Plan,
    sources: Sources,
    names: Sequence[str],
    hear: Hear,
    request: Request,
    folder: Path,
    how: Mapping[str, Any],
) -> Found:
    """On ranks, by way of files in ``folder``; ``how`` may have ``ansi`` and ``sub_buckets``."""
    for n, batches in sources.items():
        _stage(folder / "in" / str(n), batches)
    _write(folder / "plan.json", plan.to_json())
    out = folder / "out"
    spec = {
        "plan": str(folder / "plan.json"),
        "in": str(folder / "in"),
        "out": str(out),
        "format": "arrow",
        "outputs": list(names),
        **how,
        "ranks": request.ranks,
        "launcher": request.launcher,
        "python": list(request.python),
        "oversubscribe": request.oversubscribe,
        "env": {"PYTHONPATH": python_path()},
        "scratch": str(folder),
    }
    _write(folder / "spec.json", spec)
    _supervise(folder / "spec.json", hear)
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return Found({n: _read(out / result_folder(n)) for n in names}, report)


def _progress(relation: str, backend: str, counts: Mapping[str, Any], began: float) -> RunProgress:
    told = {name: counts[name] for name in ("iteration", "delta", "total", "changed", "bytes")}
    return RunProgress(relation, relation, backend, seconds=time.perf_counter() - began, **told)


def _stage(folder: Path, batches: Iterator[pa.RecordBatch]) -> None:
    """One stream, where there are rows at all."""
    for missing in (folder.parent, folder):
        missing.mkdir(mode=0o700, exist_ok=True)
    first = next(batches, None)
    if first is not None:
        with _created(folder / "0.arrow") as sink, pa.ipc.new_stream(sink, first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with _created(path) as file:
        file.write(json.dumps(content).encode())


def _created(path: Path) -> BinaryIO:
    """Open a new file that nobody else reads, whatever the umask."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _read(folder: Path) -> pa.Table:
    parts = []
    for path in sorted(folder.glob("part-*.arrow")):
        with pa.memory_map(str(path)) as file:
            parts.append(pa.ipc.open_stream(file).read_all())
    return pa.concat_tables(parts)


def _supervise(spec: Path, hear: Hear) -> None:
    told: dict[str, Any] = {}
    began = time.perf_counter()
    with _supervisor(spec) as supervisor:
        for line in lines_of(supervisor):
            told = json.loads(line)
            if told["event"] == "progress":
                hear(_progress(told["relation"], "mpi", told, began))
    if not told.get("ok"):
        raise error_of_rank(told.get("error", ended_silently(supervisor.returncode)))


@contextmanager
def _supervisor(spec: Path) -> Iterator[subprocess.Popen[bytes]]:
    """In a session of its own: Ctrl-C is for this process, which closes its stdin, and that ends the ranks."""
    began = time.time() - 1  # file systems count in ticks
    supervisor = subprocess.Popen(  # noqa: S603 - this Python and our own arguments
        [sys.executable, "-m", "mpi_backend.launch", str(spec)],
        env={**os.environ, "PYTHONPATH": python_path(), RUN_VARIABLE: str(spec)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield supervisor
    finally:
        cast("IO[bytes]", supervisor.stdin).close()
        try:
            supervisor.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            kill_tree(supervisor.pid)
            supervisor.wait()
        if supervisor.returncode < 0:
            clear(str(spec), began)
        cast("IO[bytes]", supervisor.stdout).close()


def is_of_the_run(problem: ParalaggError) -> bool:
    """Whether an error is what Spark would raise while it computes: it has Spark's code then."""
    return not problem.code.startswith("PARALAGG_")
