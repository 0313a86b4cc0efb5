"""Under mpiexec, run the plan of every folder in FOLDER into ``out-TAG``; options are those of the engine.

If all ranks fail on a plan, the error goes to its ``out-<TAG>/failed``, and the other plans run. If only some ranks
fail, the job ends.
"""

# ruff: noqa: E402 - the engine is imported with pandas and scipy hidden, as on a rank: that is half of the start
from __future__ import annotations

import argparse
import json
import sys
import traceback
from pathlib import Path

from mpi4py import MPI

from mpi_backend.worker import UnusedImportBlocker

sys.meta_path.insert(0, UnusedImportBlocker())

from mpi_backend.comm import PIECE_BYTES, MpiComm
from mpi_backend.load import place_edges
from mpi_backend.load.files import read_sources, write_result
from mpi_backend.loop import ordered
from mpi_backend.loop.engine import run_plan
from mpi_backend.state import loop_state
from mpi_backend.state.facts import HEAVY_PARTS
from mpi_backend.state.sub_buckets import Refinement
from pyspark_paralagg.plan.read import plan_from_json


def main() -> None:
    """Run the plans of all folders, in their order."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("tag")
    parser.add_argument("--piece-bytes", type=int, default=PIECE_BYTES)
    parser.add_argument("--buckets", type=int)
    parser.add_argument("--sub-buckets", type=int, default=1)
    parser.add_argument("--refine", nargs=3, type=float, help="rounds, split ratio and merge share of sub-buckets")
    parser.add_argument("--roll-over", type=int, default=0, help="rows for others that are sent before a round ends")
    parser.add_argument("--out-words", type=int, default=loop_state.OUT_WORDS, help="size of the buffer of a rule")
    parser.add_argument("--enough", type=int, help="rows after which a loop by value hears of others")
    parser.add_argument("--edges-a-rank", type=int, default=place_edges.EDGES_A_RANK, help="of a row that has mirrors")
    parser.add_argument("--heavy-parts", type=float, default=HEAVY_PARTS, help="more: more are heavy")
    parser.add_argument("--only", nargs="*", help="names of folders; by default all")
    options = parser.parse_args()
    place_edges.EDGES_A_RANK = options.edges_a_rank
    loop_state.OUT_WORDS = options.out_words
    if options.enough is not None:
        ordered._ROWS_PER_EXCHANGE = options.enough
    comm = MpiComm(MPI.COMM_WORLD, options.piece_bytes)
    folders = sorted(p.parent for p in options.folder.glob("*/plan.json"))
    for folder in (f for f in folders if options.only is None or f.name in options.only):
        out = folder / f"out-{options.tag}"
        try:
            problem = None
            _run(folder, out, comm, options)
        except Exception:  # noqa: BLE001 - all errors are reported
            problem = traceback.format_exc()
        problems = MPI.COMM_WORLD.gather(problem, 0)
        if comm.rank == 0 and any(problems):
            out.mkdir(exist_ok=True)
            (out / "failed").write_text("\n".join(p for p in problems if p))


def _run(folder: Path, out: Path, comm: MpiComm, options: argparse.Namespace) -> None:
    plan = plan_from_json(json.loads((folder / "plan.json").read_text()))
    sources = read_sources(plan, folder / "in", "arrow", comm.rank, comm.size)
    refinement = None if options.refine is None else Refinement(int(options.refine[0]), *options.refine[1:])
    run = run_plan(
        plan, sources, comm, buckets=options.buckets, sub_buckets=options.sub_buckets, heavy_parts=options.heavy_parts,
        refinement=refinement, roll_over_rows=options.roll_over,
    )  # fmt: skip
    if comm.rank == 0:
        out.mkdir(exist_ok=True)
        (out / "forms").write_text("\n".join(s["form"] for s in run.strata))
    for r in (r for s in plan.strata for r in s.relations):
        write_result(r, run.results[r.name], out, "arrow", options.buckets or comm.size, comm.rank, comm.size)


def _end_all(kind: type[BaseException], problem: BaseException, trace: object) -> None:
    sys.__excepthook__(kind, problem, trace)  # type: ignore[arg-type]
    MPI.COMM_WORLD.Abort(1)


sys.excepthook = _end_all
main()
