"""Run a Plan on the engine of ``mpi_backend``: in this process, or on ranks that a supervisor starts and watches."""

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
from pyspark_paralagg.codes import CODES
from pyspark_paralagg.command.supervised import read_lines, silent_exit_error
from pyspark_paralagg.errors import ParalaggError, error_from_rank
from pyspark_paralagg.report.run_progress import RunProgress
from pyspark_paralagg.session.ranks import environment, python_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from mpi_backend.launch.preflight import Request
    from mpi_backend.loop.loop_stats import Counts
    from pyspark_paralagg.plan.plan import Plan

    Sources = Mapping[int, Iterator[pa.RecordBatch]]
    ProgressListener = Callable[[RunProgress], None]

_EXIT_TIMEOUT_SECONDS = 20
"""How long the supervisor may take to end; it ends its ranks in less time."""


@dataclass(frozen=True)
class EngineResult:
    """The rows of the requested relations, with the Plan's columns, and the report of the run."""

    tables: Mapping[str, pa.Table]
    report: Mapping[str, Any]


def run_in_process(  # noqa: PLR0913 - the parts of a run's specification
    plan: Plan,
    sources: Sources,
    names: Sequence[str],
    listener: ProgressListener,
    *,
    ansi: bool,
    counted: Collection[str] = (),
) -> EngineResult:
    """Run ``plan`` in this process; call ``listener`` after each iteration. The engine's errors pass through.

    Results of relations in ``counted`` may have no values.
    """
    from mpi_backend.loop.alone import run_alone  # noqa: PLC0415 - Numba is slow to load

    start = time.perf_counter()

    def report_progress(relation: str, counts: Counts) -> None:
        listener(_progress(relation, "local", counts._asdict(), start))

    rows, run = run_alone(plan, sources, names, ansi=ansi, counted=counted, progress=report_progress)
    return EngineResult(rows, {"strata": run.strata, "per_iteration": run.per_iteration, "bytes": run.bytes})


def run_on_ranks(  # noqa: PLR0913, PLR0917 - the parts of a run's specification
    plan: Plan,
    sources: Sources,
    names: Sequence[str],
    listener: ProgressListener,
    request: Request,
    folder: Path,
    settings: Mapping[str, Any],
) -> EngineResult:
    """Run ``plan`` on ranks, with files in ``folder``.

    ``settings`` may have ``ansi``, ``sub_buckets``, ``counted``, ``functors``.
    """
    for n, batches in sources.items():
        _stage(folder / "in" / str(n), batches)
    _write_json(folder / "plan.json", plan.to_json())
    if "functors" in settings:
        _write_json(folder / "functors.json", settings["functors"])
        settings = {**settings, "functors": str(folder / "functors.json")}
    output_folder = folder / "out"
    spec = {
        "plan": str(folder / "plan.json"),
        "in": str(folder / "in"),
        "out": str(output_folder),
        "format": "arrow",
        "outputs": list(names),
        **settings,
        "ranks": request.ranks,
        "launcher": request.launcher,
        "python": list(request.python),
        "oversubscribe": request.oversubscribe,
        "env": environment(),
        "scratch": str(folder),
    }
    _write_json(folder / "spec.json", spec)
    _supervise(folder / "spec.json", listener)
    report = json.loads((output_folder / "report.json").read_text(encoding="utf-8"))
    return EngineResult({n: _read(output_folder / result_folder(n)) for n in names}, report)


def _progress(relation: str, backend: str, counts: Mapping[str, Any], start: float) -> RunProgress:
    values = {name: counts[name] for name in ("iteration", "delta", "total", "changed", "bytes")}
    return RunProgress(relation, relation, backend, seconds=time.perf_counter() - start, **values)


def _stage(folder: Path, batches: Iterator[pa.RecordBatch]) -> None:
    """Write ``batches`` as one Arrow stream in ``folder``, or no file if there are no batches."""
    for path in (folder.parent, folder):
        path.mkdir(mode=0o700, exist_ok=True)
    first = next(batches, None)
    if first is not None:
        with _open_private(folder / "0.arrow") as sink, pa.ipc.new_stream(sink, first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    with _open_private(path) as file:
        file.write(json.dumps(content).encode())


def _open_private(path: Path) -> BinaryIO:
    """Open a new file with access for this user only, whatever the umask."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _read(folder: Path) -> pa.Table:
    parts = []
    for path in sorted(folder.glob("part-*.arrow")):
        with pa.memory_map(str(path)) as file:
            parts.append(pa.ipc.open_stream(file).read_all())
    return pa.concat_tables(parts)


def _supervise(spec: Path, listener: ProgressListener) -> None:
    event: dict[str, Any] = {}
    start = time.perf_counter()
    with _supervisor(spec) as supervisor:
        for line in read_lines(supervisor):
            event = json.loads(line)
            if event["event"] == "progress":
                listener(_progress(event["relation"], "mpi", event, start))
    if not event.get("ok"):
        raise error_from_rank(event.get("error", silent_exit_error(supervisor.returncode)))


@contextmanager
def _supervisor(spec: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the supervisor and end it with the context.

    It has a session of its own, so Ctrl-C reaches this process only, which closes the supervisor's stdin. That ends
    the ranks.
    """
    start = time.time() - 1  # file times may be up to a clock tick early
    supervisor = subprocess.Popen(  # noqa: S603 - this Python and fixed arguments
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
            supervisor.wait(_EXIT_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            kill_tree(supervisor.pid)
            supervisor.wait()
        if supervisor.returncode < 0:
            clear(str(spec), start)
        cast("IO[bytes]", supervisor.stdout).close()


def is_run_error(problem: ParalaggError) -> bool:
    """Return whether ``problem`` has one of Spark's codes, for an error that Spark would raise at run time."""
    return problem.code not in CODES
