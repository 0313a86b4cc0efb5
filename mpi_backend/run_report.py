"""Gather the report of a run from all ranks, as JSON for the process that shows it."""

from __future__ import annotations

import json
import resource
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpi_backend.comm import Comm
    from mpi_backend.loop.engine import Run
    from pyspark_paralagg.plan.plan import Plan


def gathered_report(plan: Plan, run: Run, comm: Comm) -> dict[str, Any]:
    """Return the report; phases take as long as on the slowest rank. Collective."""
    own = {
        "rank": comm.rank,
        "host": socket.gethostname(),
        "bytes": run.bytes,
        "seconds": run.seconds,
        "memory": peak_memory(),
    }
    ranks = [json.loads(text) for text in comm.allgather_bytes(json.dumps(own).encode())]
    return {
        "backend": "mpi" if comm.size > 1 else "local",
        "name": plan.name,
        "form": run.strata[-1]["form"],
        "iterations": run.iterations,
        "tuples": run.tuples,
        "tasks": comm.size,
        "seconds": {phase: max(r["seconds"][phase] for r in ranks) for phase in run.seconds},
        "per_iteration": run.per_iteration,
        "strata": run.strata,
        "ranks": ranks,
    }


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
