"""One rank: ``python -m mpi_backend run plan.json --in DIR --out DIR``, under any MPI launcher or alone.

Reads ``DIR/<source>/*``, evaluates the plan, writes ``DIR/<relation>/part-*`` and, at rank 0, ``report.json``. A rank
that fails writes ``error-<rank>.json`` and ends the job. While it runs it shows that it lives: ``beats/<rank>``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi_backend.preflight import RANKS_VARIABLE
from mpi_backend.world import check_world
from pyspark_paralagg.errors import ParalaggError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.engine import Run
    from pyspark_paralagg.plan.plan import Plan

FAILED = 1
_BEAT_SECONDS = 1.0
_SILENCE_SECONDS = 15.0
_PROGRESS_SECONDS = 0.2
_LAUNCHED = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "MPI_LOCALNRANKS")


def main(argv: Sequence[str]) -> int:
    """Runs a rank; the exit code."""
    began = time.perf_counter()
    options = _parser().parse_args(argv)
    out = Path(options.out)
    (out / "beats").mkdir(parents=True, exist_ok=True)
    comm, abort = _comm(options.piece_bytes)
    threading.Thread(target=_beat, args=(out / "beats", comm.rank), daemon=True).start()
    try:
        check_world(comm.size)
        _run(options, comm, out, began)
    except BaseException as problem:  # noqa: BLE001 - whatever it is, all ranks have to end
        _write(out / f"error-{comm.rank}.json", _told(problem, comm.rank))
        traceback.print_exc()
        sys.stderr.flush()
        abort()
        return FAILED
    (out / "beats" / str(comm.rank)).unlink(missing_ok=True)  # it is not silent, it is done
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mpi_backend run", description="evaluate a plan on this rank")
    parser.add_argument("plan", help="the plan's JSON")
    parser.add_argument("--in", dest="source", required=True, help="folder with a folder of files for each source")
    parser.add_argument("--out", required=True, help="folder for results")
    parser.add_argument("--format", choices=("arrow", "parquet"), default="arrow", help="of files, in and out")
    parser.add_argument("--partitions", type=int, help="of each result; as many as ranks unless said")
    parser.add_argument("--outputs", nargs="*", help="relations to write; all unless said")
    parser.add_argument("--sub-buckets", type=int, default=1, help="of a bucket: they spread the rows of a join key")
    parser.add_argument(
        "--no-ansi", dest="ansi", action="store_false", help="overflow wraps, as without spark.sql.ansi"
    )
    parser.add_argument("--piece-bytes", type=int, default=1 << 30, help="the most that one MPI call sends to a rank")
    return parser


def _comm(piece_bytes: int) -> tuple[Comm, Any]:
    """The ranks of this job and what ends them all; alone where no launcher is."""
    from mpi_backend.comm import Alone, Ranks  # noqa: PLC0415 - after the arguments were read

    # A supervisor that wants one rank starts no launcher, whatever it was itself started by.
    if os.environ.get(RANKS_VARIABLE) == "1" or not any(name in os.environ for name in _LAUNCHED):
        return Alone(), lambda: None
    from mpi4py import MPI  # noqa: PLC0415 - needs an MPI library

    world = MPI.COMM_WORLD
    return Ranks(world, piece_bytes), lambda: world.Abort(FAILED)


def _run(options: argparse.Namespace, comm: Comm, out: Path, began: float) -> None:
    from mpi_backend.engine import run_plan  # noqa: PLC0415 - Numba takes its time, and beats have begun
    from mpi_backend.files import read_sources, write_result  # noqa: PLC0415 - likewise
    from pyspark_paralagg.plan.read import plan_from_json  # noqa: PLC0415 - likewise

    plan = plan_from_json(json.loads(Path(options.plan).read_text(encoding="utf-8")))
    partitions = options.partitions or comm.size
    started = time.perf_counter()
    sources = read_sources(plan, Path(options.source), options.format, comm.rank, comm.size)
    read = time.perf_counter()
    progress = _Progress() if comm.rank == 0 else None
    how = {"buckets": partitions, "sub_buckets": options.sub_buckets, "ansi": options.ansi, "progress": progress}
    run = run_plan(plan, sources, comm, **how)
    computed = time.perf_counter()
    for of in (r for s in plan.strata for r in s.relations):
        if options.outputs is None or of.name in options.outputs:
            write_result(of, run.results[of.name], out, options.format, partitions, comm.rank, comm.size)
    run.seconds["start"] = started - began
    run.seconds["load"] += read - started
    run.seconds["store"] += time.perf_counter() - computed
    _report(run, plan, comm, out)


def _report(run: Run, plan: Plan, comm: Comm, out: Path) -> None:
    mine = {
        "rank": comm.rank,
        "host": socket.gethostname(),
        "bytes": run.bytes,
        "seconds": run.seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
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
        _write(out / "report.json", told)


class _Progress:
    """Tells the supervisor, a few times a second."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, relation: str, iteration: int, delta: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= _PROGRESS_SECONDS:
            self._last = now
            told = {"event": "progress", "relation": relation, "iteration": iteration, "delta": delta, "total": total}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


def _beat(folder: Path, rank: int) -> None:
    """Shows that this rank lives, and ends it when its supervisor does not."""
    supervisor, mine = folder / "supervisor", folder / str(rank)
    mine.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid()}), encoding="utf-8")
    while True:
        try:
            os.utime(mine)
        except FileNotFoundError:  # this rank has done its work
            return
        try:
            silent = time.time() - supervisor.stat().st_mtime
        except FileNotFoundError:
            silent = 0.0
        if silent > _SILENCE_SECONDS:
            os._exit(FAILED)
        time.sleep(_BEAT_SECONDS)


def _told(problem: BaseException, rank: int) -> dict[str, Any]:
    known = isinstance(problem, ParalaggError)
    return {
        "class": type(problem).__name__,
        "code": problem.code if isinstance(problem, ParalaggError) else "PARALAGG_MPI_RANK_FAILED",
        "message": problem.message if isinstance(problem, ParalaggError) else f"{type(problem).__name__}: {problem}",
        "value": str(problem.value) if isinstance(problem, ParalaggError) and problem.value is not None else None,
        "place": problem.place if isinstance(problem, ParalaggError) else None,
        "hint": problem.hint if isinstance(problem, ParalaggError) else None,
        "rank": rank,
        "host": socket.gethostname(),
        "traceback": None if known else traceback.format_exc(),
    }


def _write(path: Path, told: dict[str, Any]) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(told), encoding="utf-8")
    partial.replace(path)
