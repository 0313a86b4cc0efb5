"""One rank: ``python -m mpi_backend run plan.json --in DIR --out DIR``, under any MPI launcher or alone.

Reads ``DIR/<source>/*``, evaluates the plan, writes ``DIR/<relation>/part-*`` and, at rank 0, ``report.json``. A rank
that fails tells its supervisor and ends the job. While it runs a process beside it sends heartbeats (``heartbeat``).
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import resource
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi_backend.comm import PIECE_BYTES
from mpi_backend.launch.leftovers import remove_own
from mpi_backend.launch.messages import FOLDER_VARIABLE, Files, Line
from mpi_backend.launch.preflight import MORE_MEMORY, MORE_SPACE, RANKS_VARIABLE
from mpi_backend.launch.world import check_world
from mpi_backend.names import output_names
from pyspark_paralagg.errors import ParalaggError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.launch.heartbeat import Heartbeat
    from mpi_backend.launch.messages import Signs
    from mpi_backend.loop.engine import Run
    from mpi_backend.loop.stats import Counts
    from pyspark_paralagg.plan.plan import Plan

FAILED = 1
_PROGRESS_SECONDS = 0.2
_LAUNCHED = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "MPI_LOCALNRANKS")


def main(argv: Sequence[str], heartbeat: Heartbeat | None = None) -> int:
    """Run a rank and return the exit code. ``heartbeat`` was started before anything else was loaded."""
    began = time.perf_counter()
    options = _parser().parse_args(argv)
    comm, abort = _comm(options.piece_bytes)
    try:
        _supervised(options, comm, began, heartbeat)
    except BaseException:  # noqa: BLE001 - whatever it is, all ranks have to end
        traceback.print_exc()
        sys.stderr.flush()
        abort()
        return FAILED
    return 0


def _supervised(options: argparse.Namespace, comm: Comm, began: float, heartbeat: Heartbeat | None) -> None:
    """Raises what this rank has failed of, when it has been told."""
    signs = _signs(options, comm.rank)
    try:
        if heartbeat is not None:
            heartbeat.begin(options.out, comm.rank, options.tell)
        if options.tell:
            os.chdir(os.environ[FOLDER_VARIABLE])
        check_world(comm.size)
        _run(options, comm, signs, began)
    except BaseException as problem:
        if _is_full_disk(problem):
            for part in Path(options.out).glob("*/part-*"):  # makes room for the message
                part.unlink(missing_ok=True)
        signs.fail(_told(problem, comm.rank))
        raise
    finally:
        if heartbeat is not None:
            heartbeat.end()
    signs.end()


def _signs(options: argparse.Namespace, rank: int) -> Signs:
    if options.tell:
        return Line(options.tell, rank)
    files = Files(Path(options.out), rank)
    files.begin()
    return files


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mpi_backend run", description="evaluate a plan on this rank")
    parser.add_argument("plan", help="the plan's JSON")
    parser.add_argument("--in", dest="source", required=True, help="folder with a folder of files for each source")
    parser.add_argument("--out", required=True, help="folder for results")
    parser.add_argument("--format", choices=("arrow", "parquet"), default="arrow", help="of files, in and out")
    parser.add_argument("--partitions", type=int, help="of each result; as many as ranks unless said")
    parser.add_argument("--outputs", type=output_names, help="relations to write, as A,B; all unless said")
    parser.add_argument("--sub-buckets", type=int, default=1, help="of a bucket: they spread the rows of a join key")
    parser.add_argument(
        "--no-ansi", dest="ansi", action="store_false", help="overflow wraps, as without spark.sql.ansi"
    )
    parser.add_argument("--tell", help="the supervisor's host:port, where each host has folders of its own")
    parser.add_argument("--piece-bytes", type=int, default=PIECE_BYTES, help="the most that a call sends to a rank")
    return parser


def _comm(piece_bytes: int) -> tuple[Comm, Any]:
    """The ranks of this job and what ends them all; alone where no launcher is."""
    from mpi_backend.comm import Alone, Ranks  # noqa: PLC0415 - after the arguments were read

    # A supervisor that wants one rank starts no launcher, whatever it was itself started by.
    if os.environ.get(RANKS_VARIABLE) == "1" or not any(name in os.environ for name in _LAUNCHED):
        return Alone(), lambda: None
    from mpi4py import MPI  # noqa: PLC0415 - needs an MPI library

    world = MPI.COMM_WORLD
    world.Barrier()  # all have opened what they share
    remove_own()
    return Ranks(world, piece_bytes), lambda: world.Abort(FAILED)


def _run(options: argparse.Namespace, comm: Comm, signs: Signs, began: float) -> None:
    from mpi_backend.load.files import read_sources, write_result  # noqa: PLC0415 - likewise
    from mpi_backend.loop.engine import run_plan  # noqa: PLC0415 - Numba takes its time, and beats have begun
    from pyspark_paralagg.plan.read import plan_from_json  # noqa: PLC0415 - likewise

    plan = plan_from_json(json.loads(Path(options.plan).read_text(encoding="utf-8")))
    partitions = options.partitions or comm.size
    started = time.perf_counter()
    sources = read_sources(plan, Path(options.source), options.format, *_share(options, comm))
    read = time.perf_counter()
    progress = _Progress() if comm.rank == 0 else None
    how = {"buckets": partitions, "sub_buckets": options.sub_buckets, "ansi": options.ansi, "progress": progress}
    run = run_plan(plan, sources, comm, **how)
    if progress is not None:
        progress.tell()
    computed = time.perf_counter()
    for of in (r for s in plan.strata for r in s.relations):
        if options.outputs is None or of.name in options.outputs:
            write_result(of, run.results[of.name], Path(options.out), options.format, partitions, comm.rank, comm.size)
    run.seconds["start"] = started - began
    run.seconds["load"] += read - started
    run.seconds["store"] += time.perf_counter() - computed
    _report(run, plan, comm, signs)


def _share(options: argparse.Namespace, comm: Comm) -> tuple[int, int]:
    """Which of how many readers of the folder this rank is."""
    if options.tell is None:
        return comm.rank, comm.size
    return int(os.environ["MPI_LOCALRANKID"]), int(os.environ["MPI_LOCALNRANKS"])


def _report(run: Run, plan: Plan, comm: Comm, signs: Signs) -> None:
    mine = {
        "rank": comm.rank,
        "host": socket.gethostname(),
        "bytes": run.bytes,
        "seconds": run.seconds,
        "memory": _memory(),
    }
    ranks = [json.loads(b) for b in comm.gather(json.dumps(mine).encode())]
    if comm.rank == 0:
        told = {
            "backend": "mpi" if comm.size > 1 else "local",
            "name": plan.name,
            "iterations": run.iterations,
            "tuples": run.tuples,
            "tasks": comm.size,
            "seconds": {k: max(r["seconds"][k] for r in ranks) for k in ("start", "load", "loop", "store")},
            "per_iteration": run.per_iteration,
            "strata": run.strata,
            "ranks": ranks,
        }
        signs.report(told)


class NotNeeded:
    """Hides what Arrow and Numba load where it is installed: a quarter of a second for what no rank uses."""

    def find_spec(self, name: str, *_: object) -> None:
        """As ``importlib`` asks; None: someone else may know."""
        if name in ("pandas", "scipy"):
            raise ModuleNotFoundError(f"No module named {name!r} on a rank", name=name)


class _Progress:
    """Tells the supervisor, a few times a second, and how it was in the end."""

    def __init__(self) -> None:
        self._last = 0.0
        self._untold: dict[str, Any] | None = None

    def __call__(self, relation: str, counts: Counts) -> None:
        self._untold = {"event": "progress", "relation": relation, **counts._asdict()}
        if time.monotonic() - self._last >= _PROGRESS_SECONDS:
            self.tell()

    def tell(self) -> None:
        """What was not told yet."""
        if self._untold is not None:
            sys.stdout.write(json.dumps(self._untold) + "\n")
            sys.stdout.flush()
            self._last, self._untold = time.monotonic(), None


def _told(problem: BaseException, rank: int) -> dict[str, Any]:
    """What the supervisor reads. An error in the data is no news of a rank: it comes without a traceback."""
    told: dict[str, Any] = {"class": type(problem).__name__, "value": None, "place": None, "hint": None}
    if isinstance(problem, ParalaggError):
        value = None if problem.value is None else str(problem.value)
        told |= {"code": problem.code, "message": problem.message, "value": value}
        told |= {"place": problem.place, "hint": problem.hint}
    elif isinstance(problem, MemoryError):
        held = _memory()
        message = f"memory ran out when the rank held {held >> 20} MB: {problem}".rstrip(": ")
        told |= {"code": "PARALAGG_MPI_OUT_OF_MEMORY", "message": message, "value": str(held), "hint": MORE_MEMORY}
    elif _is_full_disk(problem):
        message = f"the disk is full to which the rank writes its results: {problem}"
        told |= {"code": "PARALAGG_MPI_STAGING", "message": message, "hint": MORE_SPACE}
    else:
        told |= {"code": "PARALAGG_MPI_RANK_FAILED", "message": f"{type(problem).__name__}: {problem}"}
    is_known = isinstance(problem, ParalaggError) or _is_full_disk(problem)
    trace = None if is_known else traceback.format_exc()
    return told | {"rank": rank, "host": socket.gethostname(), "traceback": trace}


def _is_full_disk(problem: BaseException) -> bool:
    return isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT)


def _memory() -> int:
    """The most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
