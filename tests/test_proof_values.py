"""What is accepted is right for nulls, NaN, infinities, overflow and time zones: each step against its definition.

``proof_case`` says what a case runs.
"""

# ruff: noqa: E501  (a case a line)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from proof_case import refused_or_right, rows
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.rotates(runs=3)

NOT_SOUND: dict[str, dict[str, Any]] = {
    "sign through a cut": {"expr": "v * w", "filter": "cast(w as int) >= 0", "w": "-0.5D"},
    "sign through a ceiling": {"expr": "v * w", "filter": "ceil(w) >= 0", "w": "-0.5D"},
    "order through a cut": {
        "agg": "min", "later": "0.5D", "expr": "v * cast(w as int)", "filter": "w > 0.0D", "w": "0.5D", "carried": True,
    },
    "least skips null": {"type": "int", "first": "NULL", "later": "3", "expr": "least(v, 5)"},
    "least skips null inside": {"type": "int", "first": "NULL", "later": "3", "expr": "least(v + 1, 5)"},
    **{
        f"{f} is not total": {"agg": "min", "first": "4.0D", "later": "-1.0D", "expr": f"{f}(v)"}
        for f in ("ln", "log10", "log2", "log1p", "sqrt", "asin", "acosh")
    },
    **{
        f"the filter {c}": {"agg": "min", "first": "4.0D", "later": "-1.0D", "expr": "v", "filter": c}
        for c in ("ln(v) is not null", "ln(v) < 10", "sqrt(v) < 10")
    },
    "a sum wraps": {"type": "bigint", "first": "1", "later": "9223372036854775807", "expr": "v + 1", "ansi": "false"},
    "a cast wraps": {"type": "bigint", "first": "1", "later": "3000000000", "expr": "cast(v as int)", "ansi": "false"},
    "a product wraps": {"type": "int", "first": "1", "later": "2000000000", "expr": "v * 2", "ansi": "false"},
    "wall clock time": {
        "type": "timestamp", "first": "timestamp'2024-11-03 05:59:00Z'", "later": "timestamp'2024-11-03 06:01:00Z'",
        "expr": "cast(cast(v as timestamp_ntz) as timestamp)", "zone": "America/New_York",
    },
    "zero times infinity": {
        "first": "0.0D", "later": "1.0D", "expr": "v * w", "filter": "w >= 0", "w": "double('Infinity')",
    },
    "an infinite sum": {"first": "double('-Infinity')", "later": "1.0D", "expr": "v + w", "w": "double('Infinity')"},
    "a string beside a longer one": {
        "type": "string", "first": "'b'", "later": "'z'", "expr": "case when v >= 'x' then 'a' else 'a b' end",
    },
    "a string with a quote": {
        "type": "string", "first": "'b'", "later": "'z'", "expr": "case when v >= 'x' then 'b' else 'b''c' end",
    },
    "two fields are two functions": {
        "type": "int", "first": "1", "later": "3", "w": "named_struct('a', 1, 'b', 2)",
        "expr": "case when w.a = w.b then v else -v end",
    },
    "two units are two functions": {
        "type": "int", "first": "1", "later": "3", "w": "timestamp'2024-01-03 00:00:00Z'",
        "expr": "case when timestampdiff(HOUR, timestamp'2024-01-01 00:00:00Z', w) = timestampdiff(DAY, timestamp'2024-01-01 00:00:00Z', w) then v else -v end",
    },
    "two escapes are two functions": {
        "type": "int", "first": "1", "later": "3", "w": "'a/b'",
        "expr": "case when (w like 'a/%') = (w like 'a/%' escape '/') then v else -v end",
    },
    "the hash of null": {
        "type": "int", "first": "NULL", "later": "3", "expr": "v", "filter": "(hash(v) is null) <> (v is null)",
    },
    "a text of null": {
        "type": "string", "first": "NULL", "later": "'b'", "expr": "v", "filter": "(concat_ws('-', v, v) is null) <> (v is null)",
    },
    "the hash of null in a value": {
        "type": "int", "first": "NULL", "later": "3", "expr": "case when hash(v) is not null and v is null then 5 else 1 end",
    },
    "the floor of NaN": {"first": "1.0D", "later": "double('NaN')", "expr": "cast(floor(v) as double)"},
}  # fmt: skip

SOUND: dict[str, dict[str, Any]] = {
    "days": {"type": "date", "first": "date'2024-01-31'", "later": "date'2024-02-29'", "expr": "date_add(v, 7)"},
    "days back": {"type": "date", "first": "date'2024-01-31'", "later": "date'2024-02-29'", "expr": "date_sub(v, 7)"},
    "months": {"type": "date", "first": "date'2024-01-30'", "later": "date'2024-01-31'", "expr": "add_months(v, 1)"},
    "hours": {
        "type": "timestamp", "first": "timestamp'2024-11-03 05:59:00Z'", "later": "timestamp'2024-11-03 06:01:00Z'",
        "expr": "v + interval 3 hours", "zone": "America/New_York",
    },
    "intervals": {
        "type": "interval day to second", "first": "interval 1 day", "later": "interval 2 days", "expr": "v + interval 3 hours",
    },
    "a month": {
        "type": "date", "first": "date'2024-01-30'", "later": "date'2024-01-31'", "expr": "v + interval 1 month",
    },
    "days as an interval": {
        "type": "date", "first": "date'2024-01-31'", "later": "date'2024-02-29'", "expr": "v + interval 3 days",
    },
    "months as intervals": {
        "type": "interval month", "first": "interval 1 month", "later": "interval 2 months", "expr": "v + interval 3 months",
    },
    "rounding": {"first": "1.26D", "later": "1.34D", "expr": "round(v, 1)"},
    "shifted bits": {"agg": "bit_or", "type": "bigint", "first": "1", "later": "6", "expr": "v * 2"},
    "decimals": {
        "type": "decimal(10,2)", "first": "1.50", "later": "2.25", "expr": "v * cast(1.5 as decimal(3,1))",
    },
    "least of values": {"type": "int", "first": "1", "later": "9", "expr": "least(v, 5)"},
    "probabilities": {"first": "0.25D", "later": "0.5D", "expr": "v * w", "filter": "w between 0 and 1 and v >= 0", "w": "0.5D"},
}  # fmt: skip


@pytest.mark.parametrize("backend", ["spark", "local"])
@pytest.mark.parametrize("name", NOT_SOUND)
def test_what_is_not_sound_is_refused_or_right(spark: SparkSession, name: str, backend: str) -> None:
    if backend == "local":
        pytest.importorskip("numba")
    refused_or_right(spark, NOT_SOUND[name], backend=backend)


@pytest.mark.parametrize("name", SOUND)
def test_what_is_plainly_sound_is_accepted(spark: SparkSession, name: str) -> None:
    case = SOUND[name]
    wanted = rows(spark, case, mode="iterate", max_iterations=20, backend="dataframe")
    assert rows(spark, case, backend="spark") == wanted


def test_a_tie_by_rounding_is_a_verdict_of_its_own(spark: SparkSession) -> None:
    base = spark.createDataFrame([(1, 1.0, 2)], "k long, v double, s long")
    edges = spark.createDataFrame([(1, 2, 0.5)], "a long, b long, w double")
    made = base.recursive_agg(
        "k",
        {"v": "min", "s": ra.min_by("v")},
        step=lambda r: r.join(edges, r.k == edges.a).select(edges.b.alias("k"), (r.v + edges.w).alias("v"), "s"),
        name="r",
    )
    told = str(ra.explain(made))
    assert "proved up to rounding by the rules of carried columns" in told
    assert "is finite (no infinity, no NaN), which is checked for each row" in told


def test_a_negated_null_safe_equality_keeps_its_meaning(spark: SparkSession) -> None:
    base = spark.createDataFrame([(1, 5)], "k long, v long")
    edges = spark.createDataFrame([(1, 11, None), (1, 12, "x")], "a long, k long, tag string")
    others = spark.createDataFrame([(11, "x"), (12, "x")], "s long, t string")

    def step(r: DataFrame) -> DataFrame:
        d = r.join(edges, r.k == edges.a).select(edges.k, r.v, edges.tag)
        kept = d.join(others, (d.k == others.s) & ~d.tag.eqNullSafe(others.t), "left_semi")
        return kept.select("k", "v")

    made = base.recursive_agg("k", {"v": "min"}, step=step, backend="spark", name="r")
    assert sorted(tuple(r) for r in made.collect()) == [(1, 5), (11, 5)]


@pytest.mark.parametrize("backend", ["spark", "local"])
@pytest.mark.parametrize(
    ("type_", "agg", "first", "expr", "end"),
    [
        ("double", "min", "5000", "v / 3", "0.0"),
        ("bigint", "max", "0", "case when v < 50 then v + 1 else v end", "50"),
        ("double", "min", "1", "v * 0.5D", "0.0"),
    ],
)
def test_a_long_way_to_the_fixpoint_is_no_climb(  # noqa: PLR0913, PLR0917 - a case
    spark: SparkSession, backend: str, type_: str, agg: str, first: str, expr: str, end: str
) -> None:
    if backend == "local":
        pytest.importorskip("numba")
    base = spark.sql(f"select 1L as k, cast({first} as {type_}) as v")
    made = base.recursive_agg(
        "k", {"v": agg}, step=lambda r: r.select("k", F.expr(expr).cast(type_).alias("v")), backend=backend, name="r"
    )
    assert [str(r.v) for r in made.collect()] == [end]


def test_a_climb_that_may_converge_ends_at_the_limit(spark: SparkSession) -> None:
    base = spark.sql("select 1L as k, cast(1 as double) as v")
    spark.conf.set("spark.paralagg.climb.maxIterations", 200)
    with pytest.raises(Exception, match=r"PARALAGG_NO_FIXPOINT.*200 iterations.*climb\.maxIterations"):
        base.recursive_agg(
            "k", {"v": "min"}, step=lambda r: r.selectExpr("k", "v * 0.5D as v"), backend="spark", name="r"
        ).collect()
