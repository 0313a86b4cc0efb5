"""gcd, witnesses and users' aggregators with Spark: wrong use by code, broken laws."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import assert_same_rows, frame, rows_of

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

BACKENDS = ("spark", "dataframe")
DAYS = [
    (date(2024, 1, 1), 1.5, Decimal("2.50")),
    (date(2024, 1, 1), 2.5, Decimal("1.00")),
    (date(2024, 1, 2), -3.0, Decimal("0.25")),
]
XY = ("x", "y")


def cheaper(old: Any, new: Any) -> Any:  # noqa: ANN401 - sides of an aggregator
    return new.cost < old.cost


@pytest.mark.parametrize(
    ("combine", "options", "told"),
    [
        (lambda o, n: (o + n) / 2, {}, "it is not associative: combine(combine(1.0, 1.0), 2.0) is 1.5"),
        (lambda o, _: o, {}, "it is not commutative: combine(1, 2) is 1, combine(2, 1) is 2"),
        (F.concat, {}, "it is not commutative: combine('a', 'b') is 'ab', combine('b', 'a') is 'ba'"),
        (None, {"columns": ("cost", "hops"), "improves": cheaper},
         "it is not commutative: combine((1, 1), (1, 2)) is (1, 1), combine((1, 2), (1, 1)) is (1, 2)"),
        (F.greatest, {"improves": lambda o, n: n >= o},
         "improves does not agree with combine: improves(1, 1) is true, combine(1, 1) is 1"),
        (F.greatest, {"identity": 0}, "the identity changes values: combine(0, -1) is 0"),
        (lambda o, n: o + n, {"inverse": lambda a, _: a},
         "the inverse does not restore the value: inverse(combine(1, 1), 1) is 2"),
        (lambda o, n: F.when(o > n, o), {}, "combine returns null: combine(1, 1) is null"),
    ],
    ids=["mean", "first", "concat", "half an order", "loose improves", "identity", "inverse", "null"],
)  # fmt: skip
def test_broken_law_is_told_with_the_values_that_break_it(
    spark: SparkSession, combine: Callable[..., Any] | None, options: dict[str, Any], told: str
) -> None:
    del spark
    with pytest.raises(ra.VerificationError, match="PARALAGG_AGGREGATOR_LAW") as problem:
        ra.aggregator("mine", combine, **options)
    assert told in str(problem.value)
    assert problem.value.place == "aggregator mine"


@pytest.mark.parametrize(
    ("name", "combine", "options", "code", "told"),
    [
        ("min", F.least, {}, "PARALAGG_AGGREGATOR", "the aggregator 'min' already exists"),
        ("path", F.least, {}, "PARALAGG_AGGREGATOR", "the aggregator 'path' already exists"),
        ("a b", F.least, {}, "PARALAGG_AGGREGATOR", "is not an identifier"),
        ("mine", None, {}, "PARALAGG_AGGREGATOR", "neither combine nor improves"),
        ("mine", "least", {}, "PARALAGG_AGGREGATOR", "combine is a str, not a function"),
        ("mine", F.least, {"columns": ("a", "a")}, "PARALAGG_AGGREGATOR", "twice"),
        ("mine", F.least, {"columns": ()}, "PARALAGG_AGGREGATOR", "are not identifiers"),
        ("mine", None, {"improves": cheaper, "inverse": cheaper}, "PARALAGG_AGGREGATOR", "an inverse needs combine"),
        ("mine", F.least, {"columns": ("a", "b"), "identity": 1}, "PARALAGG_AGGREGATOR", "is not a tuple of a, b"),
        ("mine", lambda *_: 5, {}, "PARALAGG_AGGREGATOR_RESULT", "returns a int, not a Column"),
        ("mine", lambda o, _: o.cots, {"columns": ("cost",)}, "PARALAGG_AGGREGATOR_RESULT", "did you mean 'cost'?"),
        ("mine", lambda o, _: {"a": o.a}, {"columns": ("a", "b")}, "PARALAGG_AGGREGATOR_RESULT", "no column 'b'"),
        ("mine", lambda o, _: [o.a], {"columns": ("a", "b")}, "PARALAGG_AGGREGATOR_RESULT", "1 columns instead of 2"),
        ("mine", lambda o, n: o / (n - n), {}, "PARALAGG_AGGREGATOR_RESULT", "DIVIDE_BY_ZERO"),
    ],
)  # fmt: skip
def test_wrong_aggregator_is_an_error_at_once(  # noqa: PLR0913, PLR0917 - a case
    spark: SparkSession,
    name: str,
    combine: Any,  # noqa: ANN401 - wrong ones
    options: dict[str, Any],
    code: str,
    told: str,
) -> None:
    del spark
    with pytest.raises(ra.UsageError) as problem:
        ra.aggregator(name, combine, **options)
    assert problem.value.code == code
    assert told in str(problem.value)


def steps(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    base = frame(spark, "node bigint, friend bigint, share int, label string", [(1, 2, 3, "a")])
    return base, frame(spark, "src bigint, dst bigint", [(1, 2)])


@pytest.mark.parametrize(
    ("keys", "aggs", "code", "told"),
    [
        ("node", {"n": ra.mcount()}, "PARALAGG_WITNESS", "names no witness"),
        ("node", {"n": ra.mcount("freind")}, "PARALAGG_AGG_COLUMN_MISSING", "did you mean 'friend'?"),
        ("node", {"n": ra.mcount("node")}, "PARALAGG_WITNESS", "is a key"),
        ("node", {"label": ra.mcount("friend")}, "PARALAGG_WITNESS", "which mcount('friend') computes"),
        ("node", {"n": ra.mcount("friend"), "friend": "min"}, "PARALAGG_WITNESS", "'friend' supplies 'n'"),
        ("node", {"n": ra.msum("label", "friend")}, "PARALAGG_AGG_TYPE", "msum takes a number"),
        ("node", {"n": ra.msum("share", "share")}, "PARALAGG_WITNESS", "is also a witness"),
        ("node", {"n": ra.msum("share")}, "PARALAGG_WITNESS", "names no witness"),
        ("node", {"n": ra.h_index("share", "friend")}, "PARALAGG_WITNESS", "ra.h_index("),
        ("node", {"n": ra.h_index("label", "share", "friend")}, "PARALAGG_AGG_TYPE", "h_index takes tinyint"),
        ("node", {"n": ra.h_index("share", "share", "friend")}, "PARALAGG_WITNESS", "is also a contribution"),
        ("node", {"n": ra.h_index("node", "share", "friend")}, "PARALAGG_WITNESS", "is also a key"),
        ("node", {"n": ra.h_index("shard", "share", "friend")}, "PARALAGG_AGG_COLUMN_MISSING", "'share'"),
        ("node", {"n": ra.mcount("friend")}, "PARALAGG_COLUMN_UNDECLARED", "'share'"),
        ("node", {"friend": "mcount"}, "PARALAGG_UNKNOWN_AGGREGATE", "ra.mcount("),
        ("node", {("friend", "share"): "min"}, "PARALAGG_AGGREGATOR_COLUMNS", "one column, but gets 2"),
        ("node", {"label": "gcd"}, "PARALAGG_AGG_TYPE", "gcd takes tinyint"),
    ],
)
def test_wrong_aggs_are_errors_at_once(
    spark: SparkSession, keys: str, aggs: dict[Any, Any], code: str, told: str
) -> None:
    base, _ = steps(spark)
    with pytest.raises(ra.UsageError) as problem:
        base.recursive_agg(keys, aggs, step=lambda d: d)
    assert problem.value.code == code
    assert told in str(problem.value)


def test_step_without_its_witness_is_an_error(spark: SparkSession) -> None:
    base, edges = steps(spark)
    with pytest.raises(ra.UsageError, match="PARALAGG_STEP_COLUMNS_MISSING") as problem:
        base.select("node", "friend").recursive_agg(
            "node",
            {"n": ra.mcount("friend")},
            step=lambda d: d.join(edges, d.node == edges.src).select(edges.dst.alias("node"), "n"),
        )
    assert problem.value.value == "friend"


def test_own_aggregator_is_checked_again_for_the_types_of_its_columns(spark: SparkSession) -> None:
    base, _ = steps(spark)
    bits = ra.aggregator("bits", lambda old, new: old.bitwiseOR(new))
    with pytest.raises(ra.UsageError, match="PARALAGG_AGGREGATOR_TYPE") as problem:
        base.select("node", "label").recursive_agg("node", {"label": bits}, step=lambda d: d)
    assert problem.value.place == "aggregator bits"
    pair = ra.aggregator("pair", columns=("a", "b"), improves=lambda o, n: F.struct(n.a, n.b) < F.struct(o.a, o.b))
    with pytest.raises(ra.UsageError, match="PARALAGG_AGGREGATOR_COLUMNS") as problem:
        base.select("node", "share").recursive_agg("node", {"share": pair}, step=lambda d: d)
    assert "aggs={('a', 'b'): pair}" in str(problem.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_combine_that_gives_null_in_the_run_ends_the_query(spark: SparkSession, backend: str) -> None:
    odd = ra.aggregator("odd", lambda old, new: F.when(old + new != 1000, F.greatest(old, new)), samples=[1, 2, 3])
    base = frame(spark, "node bigint, v bigint", [(1, 400), (1, 600)])
    with pytest.raises(Exception, match="PARALAGG_AGGREGATOR_NULL"):
        rows_of(base.recursive_agg("node", {"v": odd}, step=lambda d: d, backend=backend))


@pytest.mark.parametrize("backend", BACKENDS)
def test_strings_of_ones_own(spark: SparkSession, backend: str) -> None:
    shortest = ra.aggregator(
        "shortest",
        improves=lambda old, new: (F.length(new) < F.length(old)) | ((F.length(new) == F.length(old)) & (new < old)),
    )
    union = ra.aggregator(
        "union",
        lambda old, new: F.array_join(F.sort_array(F.array_union(F.split(old, "[|]"), F.split(new, "[|]"))), "|"),
        samples=["a", "b", "a|c"],
    )
    rows = [(1, "bb", "b"), (1, "d", "a"), (2, None, "c"), (2, "c", None)]
    base = frame(spark, "node bigint, label string, all string", rows)
    edges = frame(spark, "src bigint, dst bigint", [(1, 2), (2, 3), (3, 1), (2, 4)])
    found = base.recursive_agg(
        "node",
        {"label": shortest, "all": union},
        step=lambda d: d.join(edges, d.node == edges.src).select(edges.dst.alias("node"), d.label, d.all),
        backend=backend,
    )
    assert_same_rows(rows_of(found), [(n, "c", "a|b|c") for n in (1, 2, 3, 4)])


@pytest.mark.parametrize("backend", BACKENDS)
def test_least_number_has_no_divisor_of_its_type(spark: SparkSession, backend: str) -> None:
    base = frame(spark, "node bigint, g tinyint", [(1, -128)])
    with pytest.raises(Exception, match=r"(?i)overflow"):
        rows_of(base.recursive_agg("node", {"g": "gcd"}, step=lambda d: d, backend=backend))


@pytest.mark.parametrize("backend", BACKENDS)
def test_witnesses_of_two_columns_and_types(spark: SparkSession, backend: str) -> None:
    base = frame(
        spark,
        "k string, w string, day date, x double, y decimal(10,2)",
        [
            ("a", "u", None, 1.0, None),
            *[("a", "u", d, x, y) for d, x, y in DAYS],
            (None, "u", DAYS[0][0], -1.0, DAYS[0][2]),
        ],
    )
    given = base.withColumnRenamed("k", "j").alias("given")
    found = base.recursive_agg(
        "k",
        {"n": ra.mcount("w", "day"), "x": ra.msum("x", "w"), "y": ra.msum("y", "w", "day"), "who": ra.mcount("w")},
        step=lambda d: (
            d.select("k").join(given, d.k == F.col("j")).select("k", "w", "day", *(F.col(f"given.{c}") for c in XY))
        ),
        backend=backend,
    )
    assert found.dtypes == [
        ("k", "string"),
        ("n", "bigint"),
        ("x", "double"),
        ("y", "decimal(10,2)"),
        ("who", "bigint"),
    ]
    y = DAYS[0][2]
    assert_same_rows(rows_of(found), [("a", 2, 2.5, y + DAYS[2][2], 1), (None, 1, 0.0, y, 1)])


@pytest.mark.parametrize("backend", [*BACKENDS, "local", "python"])
def test_a_text_uses_the_users_own(spark: SparkSession, backend: str) -> None:
    text = """
        dist(x, 0) :- start(x). dist(y, $NEAREST(d + w)) :- dist(x, d), edge(x, y, w).
        largest(x, $NEAREST(-d)) :- dist(x, d).
    """
    edges = frame(spark, "x bigint, y bigint, w bigint", [(1, 2, 3), (2, 3, 4), (1, 3, 9), (1, 3, 9)])
    own = ra.aggregator("nearest", F.least)
    found = ra.datalog(
        spark, text, edge=edges, start=edges.select("x").limit(1), aggregators=[own], mode="trust", backend=backend
    )
    assert sorted(rows_of(found["dist"])) == [(1, 0), (2, 3), (3, 7)]
    assert sorted(rows_of(found["largest"])) == [(1, 0), (2, -3), (3, -7)]
