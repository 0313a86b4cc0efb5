"""An aggregate without groups in a step: Spark returns one row for it even if it reads no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rows import frame

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BASE = [(1, 4), (2, None), (3, 9)]
FILTERS = {"no rows": "k > 100", "nulls": "k = 2", "rows": "k < 100"}
"""The rows that the aggregate reads."""

ENGINES = ("spark", "spark iterate", "local")
COMPUTED = [
    ("min", "min(v)"),
    ("max", "max(v)"),
    ("sum", "sum(v)"),
    ("bit_or", "bit_or(v)"),
    ("count", "coalesce(sum(v), 0)"),
    ("count", "count(*)"),
]
"""The aggregate of the relation, and what the step computes."""
REFUSED = [
    ("max", "coalesce(max(v), 99)"),
    ("sum", "coalesce(sum(k), 5)"),
    ("sum", "sum(v) + 1"),
    ("sum", "sum(DISTINCT v)"),
    ("max", "max(v) FILTER (WHERE v > 1)"),
    ("max", "count(k)"),
    ("sum", "count(k)"),
    ("count", "sum(k)"),
    ("min", "first(v)"),
]


def fixpoint(spark: SparkSession, aggregate: str, value: str, condition: str, backend: str) -> DataFrame:
    """Return r(k, v) of a step that adds the row (7, value of the other rows with ``condition``)."""
    base = frame(spark, "k bigint, v bigint", BASE)
    return base.recursive_agg(
        "k",
        {"v": aggregate},
        step=lambda r: r.filter(f"k <> 7 AND {condition}").selectExpr(f"{value} AS v").selectExpr("7L AS k", "v"),
        backend=backend.split(maxsplit=1)[0],
        mode="iterate" if "iterate" in backend else "auto",
    )


@pytest.mark.slow("three engines; one of them starts a process for each run")
@pytest.mark.parametrize("condition", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize(("aggregate", "value"), COMPUTED)
def test_it_returns_a_row_on_every_engine(spark: SparkSession, aggregate: str, value: str, condition: str) -> None:
    # In a count, a row without a value counts 1.
    base = frame(spark, "k bigint, v bigint", [(k, 1 if v is None and aggregate == "count" else v) for k, v in BASE])
    [(expected,)] = base.filter(condition).selectExpr(value).collect()  # without a recursion
    # A count of the keys that are reached is no sum, so it has no proof.
    for backend in ENGINES if value != "count(*)" else ("spark iterate",):
        rows = dict(map(tuple, fixpoint(spark, aggregate, value, condition, backend).collect()))
        assert rows.keys() == {1, 2, 3, 7}, backend
        assert rows[7] == expected, backend


@pytest.mark.parametrize(("aggregate", "value"), REFUSED)
def test_what_no_row_derives_is_refused(spark: SparkSession, aggregate: str, value: str) -> None:
    with pytest.raises(ra.UnsupportedError) as caught:
        fixpoint(spark, aggregate, value, FILTERS["no rows"], "spark")
    assert caught.value.code == "PARALAGG_STEP_UNSUPPORTED"


def test_a_relation_without_keys_has_a_row(spark: SparkSession) -> None:
    nothing = frame(spark, "v bigint", [])
    for backend in ("spark", "local", "dataframe"):
        rows = nothing.recursive_agg([], {"v": "max"}, step=lambda r: r.selectExpr("max(v) AS v"), backend=backend)
        assert [tuple(row) for row in rows.collect()] == [(None,)], backend


@pytest.mark.parametrize(("condition", "expected"), [("k > 5", [(1, 1), (7, None)]), ("k < 5", [(1, 1), (7, 1)])])
def test_a_branch_of_sql(spark: SparkSession, condition: str, expected: list[tuple[int, int | None]]) -> None:
    query = f"""WITH RECURSIVE r(k, max() AS v) AS (
        SELECT 1, 1 UNION SELECT 7, max(v) FROM r WHERE {condition}) SELECT * FROM r"""  # noqa: S608 - the conditions stand above
    assert sorted((tuple(row) for row in spark.sql(query).collect()), key=str) == expected
