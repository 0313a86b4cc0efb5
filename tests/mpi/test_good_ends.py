"""Test that ranks end without errors, also with more ranks than cores that end at different times."""

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


@pytest.mark.rotates(runs=2)
@pytest.mark.parametrize("ranks", [4, 8])
def test_ranks_that_finish_are_not_killed(ranks: int) -> None:
    command = [mpiexec(Request("local", ranks)), "-n", str(ranks), sys.executable, str(ENDS)]
    env = {**os.environ, "HYDRA_LAUNCHER": "fork", "HYDRA_RMK": "user"}
    jobs = [
        subprocess.run(command, env=env, capture_output=True, text=True, timeout=JOB_SECONDS, check=False)  # noqa: S603 - ours
        for _ in range(JOBS)
    ]
    assert [job.returncode for job in jobs] == [0] * JOBS
    assert [job.stdout for job in jobs] == ["." * ranks] * JOBS
