"""The twelve tasks of examples/tasks: their rows, and that an engine runs them."""

from __future__ import annotations

import importlib
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark_versions import skip_without_delta

from examples.tasks import bill_of_materials
from examples.tasks.__main__ import NAMES, WITH_DELTA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent


def test_there_are_twelve() -> None:
    assert len(NAMES) == 12


@pytest.mark.parametrize("name", [n for n in NAMES if n not in WITH_DELTA])
def test_task(spark: SparkSession, name: str, caplog: pytest.LogCaptureFixture) -> None:
    task = importlib.import_module(f"examples.tasks.{name}")
    with caplog.at_level(logging.WARNING, logger="pyspark_paralagg"):
        rows = [tuple(row) for row in task.answer(spark).collect()]
    assert sorted(rows) == sorted(task.ROWS)
    assert not caplog.records  # such as a run on plain DataFrames


@pytest.mark.slow("a JVM of its own, which needs Delta's jars")
def test_task_with_delta() -> None:
    pytest.importorskip("delta")
    command = [sys.executable, "-m", "examples.tasks", "bill_of_materials"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - fixed
    skip_without_delta(done.stdout + done.stderr)
    found = re.findall(r"^\|(\w+) *\|(\w+) *\|$", done.stdout, re.MULTILINE)
    assert sorted(found[1:]) == sorted(bill_of_materials.ROWS), done.stderr[-2000:]
