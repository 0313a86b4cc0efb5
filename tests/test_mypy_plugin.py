"""Test what mypy, with the package's plugin, says of `df.recursive_agg`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
import pyspark_paralagg as ra
from pyspark.sql import DataFrame

def close(df: DataFrame, edges: DataFrame) -> DataFrame:
    reached: int = df.recursive_agg("node", step=lambda r: r.join(edges, "node"))
    df.recursive_agg("node", step=3)
    df.recursive_agg("node", stp=lambda r: r)
    df.transform(ra.recursive_agg, "node", step=lambda r: r).count()
    return df.recursive_agg("node", {"d": "min"}, step=lambda r: r.join(edges, "node"))
"""


@pytest.mark.slow("mypy reads pyspark")
def test_mypy_knows_the_method(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(FILE, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = true\nplugins = pyspark_paralagg.mypy_plugin\n", encoding="utf-8"
    )
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "use.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 - fixed
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.split(":")[1] for line in errors] == ["6", "7", "8"], done.stdout + done.stderr
    for line, part in zip(errors, ('"DataFrame"', "Callable[[DataFrame], DataFrame]", '"stp"'), strict=True):
        assert part in line
