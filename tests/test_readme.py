"""What the README shows is run: its first example, and what it says of the result."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pages import is_as_shown
from rows import frame
from spark_versions import since

import pyspark_paralagg as ra

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

README = Path(__file__).parents[1] / "README.md"


def test_the_datalog_of_the_readme_runs(spark: SparkSession) -> None:
    (text,) = re.findall(r"```prolog\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    road = frame(spark, "src bigint, dst bigint, weight bigint", [(1, 2, 4), (2, 3, 5), (3, 1, 1)])
    found = ra.datalog(spark, text, start=frame(spark, "node bigint", [(1,)]), road=road)["dist"]
    assert sorted(tuple(r) for r in found.collect()) == [(1, 0), (2, 4), (3, 9)]


@since("4.0", "WITH RECURSIVE")
def test_the_sql_of_the_readme_runs(spark: SparkSession) -> None:
    (text,) = re.findall(r"```sql\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    edges = frame(
        spark, "src bigint, dst bigint, weight bigint", [(1, 2, 7), (2, 3, 1), (1, 3, 9), (3, 1, 2), (3, 4, 99)]
    )
    edges.createOrReplaceTempView("edges")
    assert sorted(tuple(r) for r in spark.sql(text).collect()) == [(1, 0), (2, 7), (3, 8)]
    spark.catalog.dropTempView("edges")


def test_examples_of_the_readme_run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    del spark  # the example's getOrCreate() finds this session
    first, second = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(first, names)  # noqa: S102 - the README's own code
    assert is_as_shown(capsys.readouterr().out, shown)
    exec(second, names)  # noqa: S102 - likewise
    output = capsys.readouterr().out
    assert "Executor: spark" in output
    assert "iterations" in output
    assert "r(node=3, dist=8)   by step of r" in output
