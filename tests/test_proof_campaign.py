"""A slice of the campaign of proofs (``make fuzz-proofs``), with a fresh seed that is printed; about a minute."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.rotates(runs=3)

PROJECT = Path(__file__).parents[1]


@pytest.mark.slow("a campaign of forty seconds")
def test_what_is_proved_holds_of_what_spark_computes() -> None:
    """In a process of its own, since Spark must not compute what is constant while it plans."""
    seed = os.environ.get("PARALAGG_SEED") or str(random.SystemRandom().randrange(1 << 30))
    print(f"PARALAGG_SEED={seed}")  # noqa: T201 - pytest shows it where the test fails
    command = [sys.executable, "tests/campaigns/proofs", "--count", "100000", "--seconds", "40", "--seed", seed]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    compared = re.search(r"\| monotone \| ([\d,]+) \|", done.stdout)
    assert compared is not None, done.stdout
    assert int(compared[1].replace(",", "")) >= 20, done.stdout
