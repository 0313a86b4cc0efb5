"""``ra.maintain`` over sums and counts: a continued result equals a full run after inserts, deletes and updates."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import frame

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    Tables = Mapping[str, DataFrame]
    Rows = list[tuple[Any, ...]]

pytestmark = pytest.mark.rotates(runs=3)

EDGES, STARTS = "src bigint, dst bigint, w bigint", "node bigint, n bigint"


def along(d: DataFrame, t: Tables, *values: str) -> DataFrame:
    return d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", *values)


CASES: dict[str, dict[str, Any]] = {
    "quantities": {
        "keys": "node",
        "aggs": {"n": "sum"},
        "base": lambda t: t["starts"],
        "step": lambda d, t: along(d, t, "n * w AS n"),
    },
    "paths": {
        "keys": "node",
        "aggs": {"n": "count"},
        "base": lambda t: t["starts"].select("node"),
        "step": lambda d, t: along(d, t, "n"),
    },
    "two sums over a base of edges": {
        "keys": "node",
        "aggs": {"n": "sum", "m": "sum"},
        "base": lambda t: t["edges"].selectExpr("src AS node", "1L AS n", "w AS m"),
        "step": lambda d, t: along(d, t, "n", "coalesce(m, 0) + coalesce(n, 0) * w AS m"),
    },
    "both directions of a tree in two keys": {
        "keys": ["side", "node"],
        "aggs": {"n": "sum"},
        "base": lambda t: (
            t["starts"].selectExpr("'up' AS side", "node", "n").unionAll(t["starts"].selectExpr("'down'", "node", "n"))
        ),
        "step": lambda d, t: (
            d.where("side = 'up'")
            .join(t["edges"], d.node == t["edges"].src)
            .selectExpr("side", "dst AS node", "n * w AS n")
            .unionAll(
                d.where("side = 'down'").join(t["edges"], d.node == t["edges"].dst).selectExpr("side", "src", "n * w")
            )
        ),
    },
    "sums of doubles": {
        "keys": "node",
        "aggs": {"n": "sum"},
        "base": lambda t: t["starts"].selectExpr("node", "cast(n AS double) AS n"),
        "step": lambda d, t: along(d, t, "n * w / 4 AS n"),
    },
}


def full(case: str, tables: Tables) -> DataFrame:
    p = CASES[case]
    base = p["base"](tables)
    return base.recursive_agg(p["keys"], p["aggs"], step=lambda d: p["step"](d, tables), backend="spark")


def edge(rng: random.Random) -> tuple[int, int, int | None]:
    """Return an edge from a lower to a higher number, whose factor may be 0, negative or null."""
    src, dst = sorted(rng.sample(range(12), 2))
    return src, dst, rng.choice([-1, 0, 1, 2, 3, None])


def rounded(rows: Rows) -> set[tuple[Any, ...]]:
    return {tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows}


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("deletes", [False, True], ids=["inserts", "inserts and deletes"])
@pytest.mark.parametrize("case", CASES)
def test_it_equals_a_full_run(spark: SparkSession, case: str, deletes: bool) -> None:  # noqa: FBT001 - a parameter
    rng = random.Random(f"{case} {deletes}")  # noqa: S311 - the same each time
    edges = [edge(rng) for _ in range(16)]
    first = frame(spark, STARTS, [(0, 1), (1, 5), (3, 0), (3, 2), (13, None)])
    spark.conf.set("spark.sql.shuffle.partitions", str((1, 2, 7)[list(CASES).index(case) % 3]))
    for _ in range(2):
        old = full(case, {"edges": frame(spark, EDGES, edges), "starts": first}).localCheckpoint()
        gone = rng.sample(edges, 3) if deletes else []
        new = [edge(rng), edge(rng), rng.choice(edges)]  # a duplicate, or a row that is deleted too
        if deletes:
            new.append((*gone[0][:2], 7))  # an update
        edges = [*edges, *new]
        for row in gone:
            edges.remove(row)
        tables = {"edges": frame(spark, EDGES, edges), "starts": first}
        changes = {"inserted": {"edges": frame(spark, EDGES, new)}}
        if deletes:
            changes["deleted"] = {"edges": frame(spark, EDGES, gone)}
        found = ra.maintain(old, sources=tables, backend="spark", **changes, **CASES[case])
        is_rounded = case == "sums of doubles"
        exactness = "; sums of doubles may differ from a full run in their last digits" if is_rounded else ""
        assert (found.kind, found.reason) == ("incremental", f"the changes of edges can be maintained{exactness}")
        rows, expected, before = found.rows.collect(), full(case, tables).collect(), old.collect()
        assert rounded(rows) == rounded(expected)
        assert len(rows) == len(expected)
        assert rounded(found.upserts.collect()) == rounded(expected) - rounded(before)
        keys = len(rows[0]) - len(CASES[case]["aggs"])
        left = {row[:keys] for row in rounded(before)} - {row[:keys] for row in rounded(expected)}
        assert {row[:keys] for row in rounded(found.removed.collect())} == left
        found.free()


def quantities(edges: Rows, count: int) -> dict[int, int]:
    """Return the number of each part in ``count`` parts 0, by following every path."""
    total: dict[int, int] = defaultdict(int)

    def visit(node: int, n: int) -> None:
        total[node] += n
        for src, dst, w in edges:
            if src == node:
                visit(dst, n * w)

    visit(0, count)
    return dict(total)


@pytest.mark.parametrize("backend", ["spark", "local", "python", "mpi"])
def test_every_engine_gives_the_quantities_of_a_plain_loop(spark: SparkSession, backend: str) -> None:
    if backend == "mpi":
        pytest.importorskip("mpi4py")
        spark.conf.set("spark.paralagg.mpi.ranks", "2")
        spark.conf.set("spark.paralagg.mpi.oversubscribe", "true")
    before = [(0, 1, 2), (0, 2, 1), (1, 3, 4), (2, 3, 6), (3, 4, 1), (2, 5, 1), (5, 6, 1)]
    after = [(0, 1, 2), (0, 2, 3), (1, 3, 4), (2, 3, 6), (3, 4, 1), (5, 6, 1), (4, 7, 2), (4, 7, 2)]
    gone, new = [(0, 2, 1), (2, 5, 1)], [(0, 2, 3), (4, 7, 2), (4, 7, 2)]
    found = ra.maintain(
        frame(spark, STARTS, sorted(quantities(before, 10).items())),
        sources={"edges": frame(spark, EDGES, after), "starts": frame(spark, STARTS, [(0, 10)])},
        inserted={"edges": frame(spark, EDGES, new)},
        deleted={"edges": frame(spark, EDGES, gone)},
        backend=backend,
        **CASES["quantities"],
    )
    assert found.kind == "incremental"
    assert {tuple(row) for row in found.rows.collect()} == set(quantities(after, 10).items())
    assert {row.node for row in found.removed.collect()} == {5, 6}


def test_a_key_whose_sum_becomes_zero_stays(spark: SparkSession) -> None:
    found = ra.maintain(
        frame(spark, STARTS, [(0, 1), (1, 2), (2, 2)]),
        sources={
            "edges": frame(spark, EDGES, [(0, 1, 2), (0, 1, -2), (1, 2, 1)]),
            "starts": frame(spark, STARTS, [(0, 1)]),
        },
        inserted={"edges": frame(spark, EDGES, [(0, 1, -2)])},
        **CASES["quantities"],
    )
    assert {tuple(row) for row in found.rows.collect()} == {(0, 1), (1, 0), (2, 0)}


def test_a_deleted_edge_of_a_key_that_leaves_adds_no_key(spark: SparkSession) -> None:
    """The new edge leads from a key that leaves: its contribution and that of the difference are both signs of one."""
    found = ra.maintain(
        frame(spark, STARTS, [(0, 1), (1, 2)]),
        sources={"edges": frame(spark, EDGES, [(1, 2, 5)]), "starts": frame(spark, STARTS, [(0, 1)])},
        inserted={"edges": frame(spark, EDGES, [(1, 2, 5)])},
        deleted={"edges": frame(spark, EDGES, [(0, 1, 2)])},
        **CASES["quantities"],
    )
    assert found.kind == "incremental"
    assert {tuple(row) for row in found.rows.collect()} == {(0, 1)}
    assert [row.node for row in found.removed.collect()] == [1]


@pytest.mark.parametrize("deletes", [False, True])
def test_around_a_cycle_a_sum_continues_to_the_tolerance(spark: SparkSession, deletes: bool) -> None:  # noqa: FBT001
    first = frame(spark, "node bigint, n double", [(0, 1.0)])

    def step(d: DataFrame, t: Tables) -> DataFrame:
        return d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "n * w / 10D AS n")

    def run(rows: Rows) -> DataFrame:
        edges = frame(spark, EDGES, rows)
        return first.recursive_agg("node", {"n": "sum"}, step=lambda d: step(d, {"edges": edges}), tolerance=1e-9)

    before = [(0, 1, 5), (1, 2, 5), (2, 0, 5), (3, 0, 1)]
    gone, new = [(1, 2, 5)] if deletes else [], [(2, 3, 4), (1, 2, 2), (2, 4, 0)]
    after = [row for row in before if row not in gone] + new
    found = ra.maintain(
        run(before).localCheckpoint(),
        sources={"edges": frame(spark, EDGES, after), "starts": first},
        inserted={"edges": frame(spark, EDGES, new)},
        deleted={"edges": frame(spark, EDGES, gone)} if gone else None,
        keys="node",
        aggs={"n": "sum"},
        base=lambda t: t["starts"],
        step=step,
        tolerance=1e-9,
    )
    assert (found.kind, found.reason[-26:]) == ("incremental", "within the tolerance 1e-09")
    expected = {row.node: row.n for row in run(after).collect()}
    assert {row.node: row.n for row in found.rows.collect()} == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("gone", [1e300, float("inf"), float("nan"), 3.5])
def test_digits_that_a_large_addend_took_come_back_when_it_leaves(spark: SparkSession, gone: float) -> None:
    schema = "src bigint, dst bigint, w double"
    edges, first = [(0, 1, 2.1), (1, 2, 1.0)], frame(spark, "node bigint, n double", [(0, 1.0)])
    found = ra.maintain(
        frame(spark, "node bigint, n double", [(0, 1.0), (1, 2.1 + gone), (2, 2.1 + gone)]),
        sources={"edges": frame(spark, schema, edges), "starts": first},
        deleted={"edges": frame(spark, schema, [(0, 1, gone)])},
        **CASES["quantities"],
    )
    assert sorted(map(tuple, found.rows.collect())) == [(0, 1.0), (1, pytest.approx(2.1)), (2, pytest.approx(2.1))]
    assert found.kind == ("incremental" if gone == 3.5 else "full")
    assert ("digits are lost" in found.reason) == (found.kind == "full")
    found.free()


def twice(d: DataFrame, t: Tables) -> DataFrame:
    far = t["edges"].selectExpr("src AS mid", "dst AS last", "w AS more")
    pairs = t["edges"].join(far, t["edges"].dst == far.mid)
    return d.join(pairs, d.node == pairs.src).selectExpr("last AS node", "n * w * more AS n")


def distinct(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"].distinct()
    return d.join(e, d.node == e.src).selectExpr("dst AS node", "n * w AS n")


def known(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"].join(t["edges"].selectExpr("src AS other"), F.col("dst") == F.col("other"), "left_semi")
    return d.join(e, d.node == e.src).selectExpr("dst AS node", "n * w AS n")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "two reads in one branch": ({"step": twice}, "reads edges together with another changed source"),
    "DISTINCT": ({"step": distinct}, "reads edges below DISTINCT, where a new row may not be new to a sum"),
    "a semi join": ({"step": known}, "the right side of a semi join"),
    "a maximum beside a sum": (
        {
            "aggs": {"n": "sum", "m": "max"},
            "base": lambda t: t["starts"].selectExpr("node", "n", "n AS m"),
            "step": lambda d, t: along(d, t, "n * w AS n", "m"),
            "mode": "iterate",
        },
        "sums beside other aggregates cannot continue",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_steps_are_computed_again_for_a_reason(spark: SparkSession, name: str) -> None:
    other, reason = REFUSED[name]
    program = {**CASES["quantities"], **other}
    edges, first = [(0, 1, 2), (1, 2, 3), (2, 3, 1)], frame(spark, STARTS, [(0, 1)])

    def run(rows: Rows) -> DataFrame:
        tables = {"edges": frame(spark, EDGES, rows), "starts": first}
        return program["base"](tables).recursive_agg(
            program["keys"],
            program["aggs"],
            step=lambda d: program["step"](d, tables),
            mode=program.get("mode", "auto"),
        )

    found = ra.maintain(
        run(edges[:2]),
        sources={"edges": frame(spark, EDGES, edges), "starts": first},
        inserted={"edges": frame(spark, EDGES, edges[2:])},
        **program,
    )
    assert found.kind == "full"
    assert reason in found.reason
    assert found.rows.exceptAll(run(edges)).isEmpty()
