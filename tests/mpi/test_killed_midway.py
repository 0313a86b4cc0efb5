"""Test that a rank that is killed while rows move, or in an early exchange, ends the run with the coded error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mpi.test_refining import TEXTS, stage
from mpi.test_supervisor import ROOT, needs_mpi, on_linux, runs

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["runs"]
SETTINGS: dict[str, dict[str, Any]] = {
    "move": {"sub_buckets": "auto", "sub_bucket_rounds": 1, "split_ratio": 1, "merge_share": 0},
    "early": {"roll_over_rows": 1},
}


@needs_mpi
@on_linux
@pytest.mark.parametrize("name", SETTINGS)
def test_a_killed_rank_ends_the_run_with_its_code(tmp_path: Path, runs: Callable[..., Any], name: str) -> None:
    stage(tmp_path, {"case": TEXTS["set"]})
    script, file = Path(__file__).parent / "killed_midway.py", tmp_path / "killed"
    run = runs(
        3,
        "",
        plan=str(tmp_path / "case" / "plan.json"),
        python=[sys.executable, str(script)],
        env={"PYTHONPATH": str(ROOT), "KILLED_IN": name, "KILLED_FILE": str(file)},
        **{"in": str(tmp_path / "case" / "in")},
        **SETTINGS[name],
    )
    error = run.error()
    assert file.exists()
    assert (error["code"], error["message"]) == ("PARALAGG_MPI_RANK_FAILED", "a rank was killed by signal 9")
    # Hydra names a process with signal 9; that may be one that it has killed itself.
    assert error["rank"] in range(3)
    assert run.remaining_after(5) == []
