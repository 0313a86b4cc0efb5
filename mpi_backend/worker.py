"""Run one rank: ``python -m mpi_backend run plan.json --in DIR --out DIR``, under any MPI launcher or none.

The rank reads ``DIR/<source>/*``, evaluates the plan and writes ``DIR/<relation>/part-*``. Rank 0 also writes
``report.json``. A rank that fails sends its error to its supervisor and ends the job. A process beside the rank sends
its heartbeats (``heartbeat``).
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import socket
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi_backend.comm import PIECE_BYTES
from mpi_backend.launch.leftovers import remove_own
from mpi_backend.launch.messages import FOLDER_VARIABLE, FileLink, SocketLink
from mpi_backend.launch.preflight import MORE_MEMORY, MORE_SPACE, RANKS_VARIABLE
from mpi_backend.launch.world import check_world
from mpi_backend.names import listed_names
from mpi_backend.run_report import gathered_report, peak_memory
from mpi_backend.state.facts import HEAVY_PARTS
from mpi_backend.state.sub_buckets import Refinement
from pyspark_paralagg.errors import ParalaggError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.launch.heartbeat import Heartbeat
    from mpi_backend.launch.messages import SupervisorLink
    from mpi_backend.loop.loop_stats import Counts

FAILED = 1
_PROGRESS_SECONDS = 0.2
_LAUNCHED = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "MPI_LOCALNRANKS")


def main(argv: Sequence[str], heartbeat: Heartbeat | None = None) -> int:
    """Run a rank and return the exit code. The caller has started ``heartbeat`` before loading anything else."""
    started_at = time.perf_counter()
    options = _parser().parse_args(argv)
    comm, abort = _comm(options.piece_bytes)
    try:
        _run_supervised(options, comm, started_at, heartbeat)
    except BaseException:  # noqa: BLE001 - any failure has to end all ranks
        traceback.print_exc()
        sys.stderr.flush()
        abort()
        return FAILED
    return 0


def _run_supervised(options: argparse.Namespace, comm: Comm, started_at: float, heartbeat: Heartbeat | None) -> None:
    """Run the rank. If it fails, send the error to the supervisor and raise it."""
    link = _open_link(options, comm.rank)
    try:
        if heartbeat is not None:
            heartbeat.begin(options.out, comm.rank, options.tell)
        if options.tell:
            os.chdir(os.environ[FOLDER_VARIABLE])
        check_world(comm.size)
        _run(options, comm, link, started_at)
    except BaseException as problem:
        if _is_full_disk(problem):
            for part in Path(options.out).glob("*/part-*"):  # frees space for the error message
                part.unlink(missing_ok=True)
        link.send_error(_error_fields(problem, comm.rank))
        raise
    finally:
        if heartbeat is not None:
            heartbeat.end()
    link.send_end()


def _open_link(options: argparse.Namespace, rank: int) -> SupervisorLink:
    if options.tell:
        return SocketLink(options.tell, rank)
    files = FileLink(Path(options.out), rank)
    files.begin()
    return files


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mpi_backend run", description="evaluate a plan on this rank")
    parser.add_argument("plan", help="the plan's JSON")
    parser.add_argument("--in", dest="source", required=True, help="folder with a folder of files for each source")
    parser.add_argument("--out", required=True, help="folder for results")
    parser.add_argument(
        "--format", choices=("arrow", "parquet"), default="arrow", help="format of the input and output files"
    )
    parser.add_argument("--partitions", type=int, help="number of files of each result (default: one per rank)")
    parser.add_argument("--outputs", type=listed_names, help="relations to write, as A,B (default: all)")
    parser.add_argument(
        "--counted", type=listed_names, default=[], help="relations to write without values where possible, as A,B"
    )
    parser.add_argument(
        "--sub-buckets", default="1", help="sub-buckets of a bucket, which spread the rows of a join key; or auto"
    )
    parser.add_argument(
        "--sub-bucket-rounds", type=int, default=Refinement.rounds, help="rounds between changes of sub-buckets"
    )
    parser.add_argument(
        "--split-ratio", type=float, default=Refinement.split_ratio, help="a bucket with a heavier sub-bucket is split"
    )
    parser.add_argument(
        "--merge-share",
        type=float,
        default=Refinement.merge_share,
        help="buckets are merged if more than this are split",
    )
    parser.add_argument(
        "--heavy-parts", type=float, default=HEAVY_PARTS, help="a hub has more than 1/N of a rank's part of the edges"
    )
    parser.add_argument(
        "--roll-over-rows", type=int, default=0, help="rows for other ranks that a rank sends before a round ends"
    )
    parser.add_argument(
        "--no-ansi", dest="ansi", action="store_false", help="overflow wraps, as without spark.sql.ansi"
    )
    parser.add_argument("--functors", type=Path, help="JSON file of the functors, with the file of their functions")
    parser.add_argument("--tell", help="host:port of the supervisor, if each host has its own folders")
    parser.add_argument(
        "--piece-bytes", type=int, default=PIECE_BYTES, help="largest message of a call to a rank, in bytes"
    )
    return parser


def _comm(piece_bytes: int) -> tuple[Comm, Any]:
    """Return the ranks of this job and a function that ends them all; a single rank if there is no launcher."""
    from mpi_backend.comm import MpiComm, SingleRank  # noqa: PLC0415 - after the arguments were read

    # For one rank the supervisor starts no launcher, but a launcher may have started the supervisor.
    if os.environ.get(RANKS_VARIABLE) == "1" or not any(name in os.environ for name in _LAUNCHED):
        return SingleRank(), lambda: None
    from mpi4py import MPI  # noqa: PLC0415 - needs an MPI library

    world = MPI.COMM_WORLD
    world.Barrier()  # all ranks have opened the files that they share
    remove_own()
    return MpiComm(world, piece_bytes), lambda: world.Abort(FAILED)


def _run(options: argparse.Namespace, comm: Comm, link: SupervisorLink, started_at: float) -> None:
    from mpi_backend.load.files import read_sources, write_result  # noqa: PLC0415 - likewise
    from mpi_backend.loop.engine import run_plan  # noqa: PLC0415 - Numba is slow to load, and heartbeats are sent by now
    from pyspark_paralagg.plan.read import plan_from_json  # noqa: PLC0415 - likewise
    from pyspark_paralagg.program.functor_file import functors_of  # noqa: PLC0415 - likewise

    plan = plan_from_json(json.loads(Path(options.plan).read_text(encoding="utf-8")))
    if options.functors:
        plan = replace(plan, functors=functors_of(json.loads(options.functors.read_text(encoding="utf-8"))))
    partitions = options.partitions or comm.size
    run_started_at = time.perf_counter()
    sources = read_sources(plan, Path(options.source), options.format, *_reader_position(options, comm))
    read_at = time.perf_counter()
    is_refined = options.sub_buckets == "auto"
    refinement = Refinement(options.sub_bucket_rounds, options.split_ratio, options.merge_share)
    progress = _Progress() if comm.rank == 0 else None
    run = run_plan(
        plan,
        sources,
        comm,
        buckets=partitions,
        sub_buckets=1 if is_refined else int(options.sub_buckets),
        refinement=refinement if is_refined else None,
        heavy_parts=options.heavy_parts,
        roll_over_rows=options.roll_over_rows,
        ansi=options.ansi,
        counted=options.counted,
        progress=progress,
    )
    if progress is not None:
        progress.flush()
    computed_at = time.perf_counter()
    for relation in (r for s in plan.strata for r in s.relations):
        if options.outputs is None or relation.name in options.outputs:
            rows = run.results[relation.name]
            write_result(relation, rows, Path(options.out), options.format, partitions, comm.rank, comm.size)
    run.seconds = {"start": run_started_at - started_at, **run.seconds}
    run.seconds["load"] += read_at - run_started_at
    run.seconds["store"] += time.perf_counter() - computed_at
    report = gathered_report(plan, run, comm)
    if comm.rank == 0:
        link.send_report(report)


def _reader_position(options: argparse.Namespace, comm: Comm) -> tuple[int, int]:
    """Return this rank's position among the readers of its input folder, and their number."""
    if options.tell is None:
        return comm.rank, comm.size
    return int(os.environ["MPI_LOCALRANKID"]), int(os.environ["MPI_LOCALNRANKS"])


class UnusedImportBlocker:
    """An import hook that hides pandas and scipy: Arrow and Numba load them (0.25 s), and no rank uses them."""

    def find_spec(self, name: str, *_: object) -> None:
        """Raise for a hidden module. Return None for others: the next finder searches them."""
        if name in ("pandas", "scipy"):
            raise ModuleNotFoundError(f"No module named {name!r} on a rank", name=name)


class _Progress:
    """The progress events for the supervisor: at most five a second, and the last one."""

    def __init__(self) -> None:
        self._sent_at = 0.0
        self._unsent: dict[str, Any] | None = None

    def __call__(self, relation: str, counts: Counts) -> None:
        self._unsent = {"event": "progress", "relation": relation, **counts._asdict()}
        if time.monotonic() - self._sent_at >= _PROGRESS_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send the last event, if it was not sent."""
        if self._unsent is not None:
            sys.stdout.write(json.dumps(self._unsent) + "\n")
            sys.stdout.flush()
            self._sent_at, self._unsent = time.monotonic(), None


def _error_fields(problem: BaseException, rank: int) -> dict[str, Any]:
    """Return the error for the supervisor. Errors in the data or of a full disk have no traceback."""
    fields: dict[str, Any] = {"class": type(problem).__name__, "value": None, "place": None, "hint": None}
    if isinstance(problem, ParalaggError):
        value = None if problem.value is None else str(problem.value)
        fields |= {"code": problem.code, "message": problem.message, "value": value}
        fields |= {"place": problem.place, "hint": problem.hint}
    elif isinstance(problem, MemoryError):
        peak = peak_memory()
        message = f"the rank ran out of memory at {peak >> 20} MB: {problem}".rstrip(": ")
        fields |= {"code": "PARALAGG_MPI_OUT_OF_MEMORY", "message": message, "value": str(peak), "hint": MORE_MEMORY}
    elif _is_full_disk(problem):
        message = f"the disk for the rank's results is full: {problem}"
        fields |= {"code": "PARALAGG_MPI_STAGING", "message": message, "hint": MORE_SPACE}
    else:
        fields |= {"code": "PARALAGG_MPI_RANK_FAILED", "message": f"{type(problem).__name__}: {problem}"}
    is_user_error = isinstance(problem, ParalaggError) or _is_full_disk(problem)
    trace = None if is_user_error else traceback.format_exc()
    return fields | {"rank": rank, "host": socket.gethostname(), "traceback": trace}


def _is_full_disk(problem: BaseException) -> bool:
    return isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT)
