"""A slice of the fault campaign, with a fresh seed: six runs, harmed at random moments."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys

import pytest
from campaigns.faults import isolation

pytestmark = [
    pytest.mark.rotates(runs=3),
    pytest.mark.skipif(isolation.reason_against() is not None, reason=str(isolation.reason_against())),
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="ranks need mpi4py"),
]
DEADLINE_SECONDS = 1200


@pytest.mark.slow("runs with a fault each")
@pytest.mark.parametrize(
    ("engines", "count", "jobs"),
    [
        (("command, local", "command, mpi"), 4, 2),
        (("Spark",), 2, 1),  # a session of Spark takes as long to start as ten runs
    ],
    ids=["commands", "a session"],
)
def test_harmed_runs_are_right_or_say_why_and_leave_nothing(engines: tuple[str, ...], count: int, jobs: int) -> None:
    seed = random.SystemRandom().randrange(10**6)
    words = ["--count", str(count), "--seed", str(seed), "--jobs", str(jobs)]
    words += [word for engine in engines for word in ("--engine", engine)]
    ended = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-m", "campaigns.faults", *words],
        env={**os.environ, "PYTHONPATH": isolation.PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    print(ended.stdout)  # noqa: T201 - the seed and the table, where it fails
    assert ended.returncode == 0, f"{' '.join(words)}\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}"
