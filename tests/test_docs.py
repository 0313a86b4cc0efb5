"""What the documentation shows is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rows import frame

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[1] / "docs"


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_first_text_of_datalog_md_runs(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("datalog.md", "python")
    names: dict[str, Any] = {
        "spark": spark,
        "edges": frame(spark, "x bigint, y bigint, w bigint", [(1, 2, 4), (2, 3, 5)]),
    }
    exec(code, names)  # noqa: S102 - the documentation's own code
    assert re.findall(r"\|\s*(\d+)\|\s*(\d+)\|", capsys.readouterr().out) != []
    assert sorted(tuple(r) for r in names["found"]["far"].collect()) == [(3,)]


def test_the_indexed_rules_of_datalog_md_are_pagerank(spark: SparkSession) -> None:
    text = next(b for b in blocks("datalog.md", "prolog") if "rank(i + 1" in b)
    rules = text + "node(x) :- edge(x, _). node(y) :- edge(_, y). degree(x, $COUNT) :- edge(x, _)."
    edges = frame(spark, "x bigint, y bigint", [(1, 2), (2, 1), (2, 3)])
    found = {r[0]: r[1] for r in ra.datalog(spark, rules, edge=edges)["rank"].collect()}
    # Twenty rounds: the change of a round has fallen to 0.85^20 / 2^10.
    assert found[1] == pytest.approx(0.15 + 0.85 * found[2] / 2, rel=1e-4)
    assert found[3] == pytest.approx(found[1], rel=1e-9)


def test_the_error_of_datalog_md_is_what_is_said(spark: SparkSession) -> None:
    shown = next(b for b in blocks("datalog.md", "text") if "UNKNOWN_RELATION" in b).strip()
    with pytest.raises(ra.DatalogError) as caught:
        ra.datalog(spark, "p(x) :- egde(x, y).", edge=frame(spark, "x bigint, y bigint", []))
    assert str(caught.value) == shown
