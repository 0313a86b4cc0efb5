"""Run cases on real ranks (``on_ranks``) and return their counts in the form of the model's (``counts``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.datasets import PROJECT
from mpi_backend.launch.preflight import Request, mpiexec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.generators import Longs
    from mpi_backend.kernels.compiler import Array

_DEADLINE_SECONDS = 900


@dataclass(frozen=True)
class Measured:
    """A run on real ranks: arrays with a row for each round and a column for each rank.

    ``partners`` and ``copy_partners`` count the ranks to which derived rows and copies were sent. ``seconds`` is CPU
    time outside of MPI.
    """

    form: str
    work: Longs
    bytes: Longs
    partners: Longs
    copy_partners: Longs
    seconds: Array


def run_cases(
    cases: Sequence[tuple[str, str, str]], ranks: int, repeat: int = 1
) -> dict[tuple[str, str, str], Measured]:
    """Run cases (query, graph, placement) on ``ranks`` ranks, which may be more than there are cores."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.json"
        command = [
            mpiexec(Request("local", ranks)),
            "-n",
            str(ranks),
            sys.executable,
            "-m",
            "benchmarks.scale.on_ranks",
        ]
        command += [str(file), *map(",".join, cases), "--repeat", str(repeat)]
        path = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
        subprocess.run(  # noqa: S603 - our own module
            command, check=True, env={**os.environ, "PYTHONPATH": path}, timeout=_DEADLINE_SECONDS
        )
        found = json.loads(file.read_text(encoding="utf-8"))
    return {case: _measured(found[",".join(case)]) for case in cases}


def _measured(run: dict[str, Any]) -> Measured:
    by_rank = run["ranks"]
    rounds = range(len(by_rank[0]))
    words = {
        name: np.array([[[sum(r[n][name])] for r in by_rank] for n in rounds])[:, :, 0]
        for name in ("copies", "derived")
    }
    return Measured(
        run["form"],
        np.array([[r[n]["work"] for r in by_rank] for n in rounds]),
        8 * (words["copies"] + words["derived"]),
        _partners(by_rank, "derived"),
        _partners(by_rank, "copies"),
        np.array([[r[n]["seconds"] for r in by_rank] for n in rounds]),
    )


def _partners(by_rank: list[list[dict[str, Any]]], exchange: str) -> Longs:
    return np.array([[np.count_nonzero(rounds[n][exchange]) for rounds in by_rank] for n in range(len(by_rank[0]))])
