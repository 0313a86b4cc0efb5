"""Ranks that did their work end well, also where more of them than cores end one after the other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpi_backend.launch.preflight import Request, mpiexec

pytest.importorskip("mpi4py", reason="ranks need mpi4py")

JOBS = 40
ENDS = Path(__file__).parent / "ends.py"
JOB_SECONDS = 60


@pytest.mark.parametrize("ranks", [4, 8])
def test_ranks_that_did_their_work_are_not_killed(ranks: int) -> None:
    command = [mpiexec(Request("local", ranks)), "-n", str(ranks), sys.executable, str(ENDS)]
    env = {**os.environ, "HYDRA_LAUNCHER": "fork", "HYDRA_RMK": "user"}
    ended = [
        subprocess.run(command, env=env, capture_output=True, text=True, timeout=JOB_SECONDS, check=False)  # noqa: S603 - ours
        for _ in range(JOBS)
    ]
    assert [job.returncode for job in ended] == [0] * JOBS
    assert [job.stdout for job in ended] == ["." * ranks] * JOBS
