"""``ra.maintain``: a stored result after inserts and deletes equals a full run, for every lattice and engine."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import frame

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    Tables = Mapping[str, DataFrame]
    Rows = list[tuple[Any, ...]]

pytestmark = pytest.mark.rotates(runs=3)

EDGES, STARTS = "src bigint, dst bigint, w bigint", "node bigint, dist bigint"


def walk(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"]
    return d.join(e, d.node == e.src).select(e.dst.alias("node"), (d.dist + e.w).alias("dist"))


def tree(d: DataFrame, t: Tables) -> DataFrame:
    return d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "dist + w AS dist", "src AS via")


def capped(d: DataFrame, t: Tables) -> DataFrame:
    """Return rows whose value may be the weight alone, so under min it hides what it was derived from."""
    return d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "least(dist, w) AS dist")


def label(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"]
    there = d.join(e, d.node == e.src).selectExpr("dst AS node", "dist")
    return there.unionAll(d.join(e, d.node == e.dst).selectExpr("src AS node", "dist"))


def double(d: DataFrame, _: Tables) -> DataFrame:
    on = d.selectExpr("src AS via", "dst AS last")
    return d.join(on, d.dst == on.via).selectExpr("src", "last AS dst")


def two_hops(d: DataFrame, t: Tables) -> DataFrame:
    far = t["edges"].selectExpr("src AS mid", "dst AS last", "w AS more")
    pairs = t["edges"].join(far, t["edges"].dst == far.mid)
    return d.join(pairs, d.node == pairs.src).selectExpr("last AS node", "dist + w + more AS dist")


def lengths(d: DataFrame, t: Tables) -> DataFrame:
    return d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "dist + abs(w / 3D) AS dist")


def words(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"].selectExpr("cast(src AS string) AS a", "nullif(cast(dst AS string), '3') AS b", "w")
    return d.join(e, d.node == e.a).selectExpr("b AS node", "least(dist, w) AS dist")


def names(t: Tables) -> DataFrame:
    """Return the edges with names of the nodes, which order other than the numbers do."""
    return t["edges"].selectExpr("concat('n', src) AS src", "concat('n', dst) AS dst", "w")


def starts(t: Tables) -> DataFrame:
    return t["starts"]


def around(d: DataFrame, t: Tables) -> DataFrame:
    """Shortest paths around the nodes that an edge of weight 5 leads to."""
    return walk(d, t).join(t["edges"].where("w = 5").selectExpr("dst AS node"), "node", "left_anti")


def around_two(d: DataFrame, t: Tables) -> DataFrame:
    """Paths around the nodes that an edge of weight 5 leads to, or from which one of weight 4 does."""
    ends = t["edges"].where("w = 5").selectExpr("dst AS node").unionAll(t["edges"].where("w = 4").selectExpr("src"))
    return walk(d, t).join(ends, "node", "left_anti")


def around_pairs(d: DataFrame, t: Tables) -> DataFrame:
    """Paths around the nodes from which two edges of large weights lead on."""
    far = t["edges"].where("w > 2").selectExpr("src AS mid")
    pairs = t["edges"].where("w > 3").join(far, t["edges"].dst == far.mid).selectExpr("src AS node")
    return walk(d, t).join(pairs, "node", "left_anti")


CASES: dict[str, dict[str, Any]] = {
    "shortest paths": {"keys": "node", "aggs": {"dist": "min"}, "base": starts, "step": walk},
    "parents": {
        "keys": "node",
        "aggs": {"dist": "min", "via": ra.min_by("dist")},
        "base": lambda t: t["starts"].selectExpr("node", "dist", "-1L AS via"),
        "step": tree,
    },
    "values that hide their origin": {"keys": "node", "aggs": {"dist": "min"}, "base": starts, "step": capped},
    "widest paths": {
        "keys": "node",
        "aggs": {"dist": "max"},
        "base": lambda t: t["starts"].selectExpr("node", "9 - dist AS dist"),
        "step": capped,
    },
    "components": {
        "keys": "node",
        "aggs": {"dist": "min"},
        "base": lambda t: t["edges"].selectExpr("src AS node", "src AS dist"),
        "step": label,
    },
    "reach": {
        "keys": "node",
        "base": lambda t: t["starts"].select("node"),
        "step": lambda d, t: d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node"),
    },
    "closure by doubling": {
        "keys": ["src", "dst"],
        "base": lambda t: t["edges"].select("src", "dst"),
        "step": double,
    },
    "two reads of the edges": {"keys": "node", "aggs": {"dist": "min"}, "base": starts, "step": two_hops},
    "doubles": {
        "keys": "node",
        "aggs": {"dist": "min"},
        "base": lambda t: t["starts"].selectExpr("node", "cast(dist AS double) AS dist"),
        "step": lengths,
    },
    "strings and nulls": {
        "keys": "node",
        "aggs": {"dist": "max"},
        "base": lambda t: t["starts"].selectExpr("nullif(cast(node AS string), '1') AS node", "100L AS dist"),
        "step": words,
    },
    "names of components": {
        "keys": "node",
        "aggs": {"dist": "min"},
        "base": lambda t: names(t).selectExpr("src AS node", "src AS dist"),
        "step": lambda d, t: label(d, {"edges": names(t)}),
    },
    "names of parents": {
        "keys": "node",
        "aggs": {"dist": "min", "via": ra.min_by("dist")},
        "base": lambda t: t["starts"].selectExpr("concat('n', node) AS node", "dist", "'' AS via"),
        "step": lambda d, t: tree(d, {"edges": names(t)}),
    },
    "an anti join in the step": {"keys": "node", "aggs": {"dist": "min"}, "base": starts, "step": around},
    "anti joins of anti joins": {
        "keys": "node",
        "base": lambda t: (
            t["edges"]
            .selectExpr("src AS node")
            .subtract(t["starts"].select("node"))
            .unionAll(
                t["edges"].selectExpr("src AS node").join(t["edges"].selectExpr("dst AS node"), "node", "left_anti")
            )
        ),
        "step": lambda d, t: around(d.withColumn("dist", d.node), t).select("node"),
    },
    "an anti join with a union": {"keys": "node", "aggs": {"dist": "min"}, "base": starts, "step": around_two},
    "an anti join with a join": {"keys": "node", "aggs": {"dist": "min"}, "base": starts, "step": around_pairs},
    "who comes": {  # if two friends come
        "keys": "node",
        "aggs": {"n": ra.mcount("who")},
        "base": lambda t: t["starts"].selectExpr("node", "explode(array(-1L, -2L)) AS who"),
        "step": lambda d, t: (
            d.where("n >= 2").join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "src AS who")
        ),
    },
    "who controls whom": {
        "keys": "node",
        "aggs": {"share": ra.msum("part", "who"), "n": ra.mcount("who")},
        "base": lambda t: t["starts"].selectExpr("node", "30L AS part", "-1L AS who"),
        "step": lambda d, t: (
            d.where("share > 3")
            .join(t["edges"], d.node == t["edges"].src)
            .selectExpr("dst AS node", "w AS part", "src AS who")
        ),
    },
    "distances of subsets": {
        "keys": "node",
        "aggs": {"dist": "bit_or"},
        "base": lambda t: t["starts"].selectExpr("node", "shiftleft(1L, cast(node AS int)) AS dist"),
        "step": lambda d, t: d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "dist"),
    },
}


def full(case: str, tables: Tables) -> DataFrame:
    """Return the result of a full run, by an API without maintenance."""
    p = CASES[case]
    return p["base"](tables).recursive_agg(
        p["keys"], p.get("aggs"), step=lambda d: p["step"](d, tables), backend="spark", mode="trust"
    )


def batch(rng: random.Random, edges: Rows, nodes: int, count: int) -> tuple[Rows, Rows, Rows]:
    """Return the edges after a change, the inserted and the deleted ones: self-loops, duplicates, and both at once."""
    deleted = [edges[n] for n in rng.sample(range(len(edges) - 1), count)] + edges[-1:]
    inserted = [(rng.randrange(nodes), rng.randrange(nodes), rng.randrange(6)) for _ in range(count - 1)]
    inserted.append(rng.choice(edges))  # a duplicate, or a row that is deleted too
    after = list(edges)
    for row in deleted:
        after.remove(row)
    return after + inserted, inserted, deleted


def values(rows: Rows) -> set[tuple[Any, ...]]:
    return {tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in rows}


@pytest.mark.rotates(runs=2)
@pytest.mark.parametrize("case", CASES)
def test_it_equals_a_full_run(spark: SparkSession, case: str) -> None:
    rng = random.Random(case)  # noqa: S311 - the same each time
    edges = [(rng.randrange(14), rng.randrange(14), rng.randrange(6)) for _ in range(26)]
    edges += [(2, 2, 0), edges[0], (20, 21, 1), (21, 20, 1), (0, 20, 1)]  # the last one leads to a cycle
    first = frame(spark, STARTS, [(0, 0), (1, 5)])
    old = full(case, {"edges": frame(spark, EDGES, edges), "starts": first}).localCheckpoint()
    partitions = (1, 2, 7)[list(CASES).index(case) % 3]
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    edges, inserted, deleted = batch(rng, edges, 15, 4)
    tables = {"edges": frame(spark, EDGES, edges), "starts": first}
    found = ra.maintain(
        old,
        sources=tables,
        inserted={"edges": frame(spark, EDGES, inserted)},
        deleted={"edges": frame(spark, EDGES, deleted)},
        mode="trust",
        backend="spark",
        **CASES[case],
    )
    assert (found.kind, found.reason) == ("incremental", "the changes of edges can be maintained")
    rows = found.rows.collect()
    expected, before = values(full(case, tables).collect()), values(old.collect())
    assert values(rows) == expected != before
    assert len(rows) == len(expected)
    assert values(found.upserts.collect()) == expected - before
    width = 1 if isinstance(CASES[case]["keys"], str) else 2
    left = {row[:width] for row in before} - {row[:width] for row in expected}
    assert {row[:width] for row in values(found.removed.collect())} == left


def distances(edges: Rows) -> set[tuple[int, int]]:
    """Return shortest paths from node 0, by passes over all edges until nothing changes."""
    best = {0: 0}
    for _ in range(len(edges) + 1):
        for src, dst, w in edges:
            if src in best:
                best[dst] = min(best.get(dst, 1 << 40), best[src] + w)
    return set(best.items())


@pytest.mark.parametrize("backend", ["spark", "local", "python", "dataframe", "mpi"])
def test_every_engine_gives_the_rows_of_a_plain_loop(spark: SparkSession, backend: str) -> None:
    if backend == "mpi":
        pytest.importorskip("mpi4py")
        spark.conf.set("spark.paralagg.mpi.ranks", "2")
        spark.conf.set("spark.paralagg.mpi.oversubscribe", "true")
    edges = [(0, 1, 1), (1, 2, 1), (2, 1, 0), (0, 3, 9), (3, 2, 9), (2, 4, 1), (4, 4, 0), (2, 4, 1)]
    old = frame(spark, STARTS, sorted(distances(edges)))
    gone, new = [(0, 1, 1), (2, 4, 1)], [(3, 5, 2)]
    after = [(1, 2, 1), (2, 1, 0), (0, 3, 9), (3, 2, 9), (2, 4, 1), (4, 4, 0), (3, 5, 2)]
    found = ra.maintain(
        old,
        sources={"edges": frame(spark, EDGES, after), "starts": frame(spark, STARTS, [(0, 0)])},
        inserted={"edges": frame(spark, EDGES, new)},
        deleted={"edges": frame(spark, EDGES, gone)},
        backend=backend,
        mode="iterate" if backend == "dataframe" else "auto",
        **CASES["shortest paths"],
    )
    assert values(found.rows.collect()) == distances(after)
    assert found.kind == ("full" if backend == "dataframe" else "incremental")


def test_a_cycle_that_only_supports_itself_leaves(spark: SparkSession) -> None:
    edges = [(1, 2, 0), (2, 3, 0), (3, 1, 0)]
    found = maintained(spark, [(0, 0), (1, 4), (2, 4), (3, 4)], edges, gone=[(0, 1, 4)])
    assert (values(found.rows.collect()), found.kind, found.fallen) == ({(0, 0)}, "incremental", 3)


def test_a_zero_that_becomes_negative_is_a_change(spark: SparkSession) -> None:
    schema = "a double, b string"
    found = ra.maintain(
        frame(spark, "k string", [("0.0",), ("1.0",)]),
        keys="k",
        sources={"e": frame(spark, schema, [(-0.0, "x"), (1.0, "y")])},
        inserted={"e": frame(spark, schema, [(-0.0, "x"), (1.0, "y")])},
        deleted={"e": frame(spark, schema, [(0.0, "x"), (1.0, "y")])},
        base=lambda t: t["e"].selectExpr("cast(a AS string) AS k"),
        step=lambda d, t: d.join(t["e"], d.k == t["e"].b).selectExpr("k"),
    )
    assert sorted(row.k for row in found.rows.collect()) == ["-0.0", "1.0"]


SIDES: dict[str, Callable[[Tables], DataFrame]] = {
    "union": lambda t: t["a"].select("x").unionAll(t["b"].select("x")),
    "join": lambda t: t["a"].join(t["b"].selectExpr("x AS z"), F.col("y") == F.col("z")).select("x"),
    "intersection": lambda t: t["a"].select("x").intersect(t["b"].selectExpr("y AS x")),
    "join with itself": lambda t: t["a"].join(t["a"].selectExpr("x AS z"), F.col("y") == F.col("z")).select("x"),
}


@pytest.mark.parametrize("side", SIDES)
def test_several_sources_change_on_the_right_side_of_an_anti_join(spark: SparkSession, side: str) -> None:
    edges, first = [(0, 1, 1), (1, 2, 1), (2, 3, 1)], frame(spark, STARTS, [(0, 0)])
    two = {"a": [(2, 7), (7, 7)], "b": [(7, 2), (2, 7)]}
    states: list[dict[str, Rows]] = [{"a": [], "b": []}, two, {"a": two["a"][:1], "b": two["b"]}, {"a": [], "b": []}]
    old = frame(spark, STARTS, [(0, 0), (1, 1), (2, 2), (3, 3)])
    for before, now in pairwise(states):
        tables = {n: frame(spark, "x bigint, y bigint", rows) for n, rows in now.items()}
        tables |= {"edges": frame(spark, EDGES, edges), "starts": first}
        gone, new = (
            {n: frame(spark, "x bigint, y bigint", rows) for n in "ab" if (rows := [r for r in p[n] if r not in q[n]])}
            for p, q in ((before, now), (now, before))
        )
        options: dict[str, Any] = {"keys": "node", "aggs": {"dist": "min"}, "base": starts}
        options["step"] = lambda d, t: walk(d, t).join(SIDES[side](t).toDF("node"), "node", "left_anti")
        found = ra.maintain(old, sources=tables, inserted=new, deleted=gone, backend="spark", **options)
        bad = {row[0] for row in SIDES[side](tables).collect()}
        assert found.kind == "incremental"
        expected = [(n, n) for n in range(4) if not bad & set(range(1, n + 1))]
        assert sorted(values(found.rows.collect())) == expected
        old = frame(spark, STARTS, expected)


def test_only_rows_of_the_same_value_fall(spark: SparkSession) -> None:
    edges = [(0, 1, 1), (1, 2, 1), (2, 3, 1)]
    found = maintained(spark, [(0, 0), (1, 1), (2, 2), (3, 3)], edges, gone=[(0, 1, 7)])
    assert (found.kind, found.fallen, values(found.removed.collect())) == ("incremental", 0, set())


def maintained(spark: SparkSession, old: Rows, edges: Rows, gone: Rows, **options: Any) -> Any:  # noqa: ANN401
    return ra.maintain(
        frame(spark, STARTS, old),
        sources={"edges": frame(spark, EDGES, edges), "starts": frame(spark, STARTS, [(0, 0)])},
        deleted={"edges": frame(spark, EDGES, gone)},
        **{**CASES["shortest paths"], **options},
    )


def test_more_fallen_rows_than_a_fifth_are_computed_again(spark: SparkSession) -> None:
    old = [(0, 0)] + [(n, 1) for n in range(1, 1_300)]
    found = maintained(spark, old, [(0, 2_000, 1)], gone=[(0, n, 1) for n in range(1, 1_300)])
    assert (found.kind, values(found.rows.collect())) == ("full", {(0, 0), (2_000, 1)})
    assert found.reason == "more than 1,000 of 1,300 stored rows may have lost their support"


REASONS: dict[str, tuple[dict[str, Any], str]] = {
    "a sum": (
        {"aggs": {"dist": "sum"}, "step": lambda d, t: walk(d, t).where("false"), "mode": "iterate"},
        'mode="iterate" recomputes all rows',
    ),
    "a limit": ({"max_iterations": 9, "on_limit": "return"}, "max_iterations is set"),
    "an outer join": (
        {
            "base": lambda t: (
                t["starts"].join(t["edges"].selectExpr("dst AS node"), "node", "left").select("node", "dist")
            )
        },
        "the program reads edges below the optional side of a left outer join",
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_the_rest_is_computed_again_for_a_reason(spark: SparkSession, name: str) -> None:
    options, reason = REASONS[name]
    found = maintained(spark, [(0, 0), (1, 1)], [(5, 6, 1)], gone=[(0, 1, 1)], **options)
    assert (found.kind, values(found.rows.collect())) == ("full", {(0, 0)})
    assert found.reason.startswith(reason)
    assert values(found.removed.collect()) == {(1, 1)}


def test_without_changes_nothing_runs(spark: SparkSession) -> None:
    found = ra.maintain(frame(spark, STARTS, [(0, 0)]), sources={"starts": frame(spark, STARTS, [(0, 0)])},
                        **{**CASES["shortest paths"], "step": lambda d, _: d})  # fmt: skip
    assert (found.kind, values(found.rows.collect())) == ("none", {(0, 0)})


WRONG: dict[str, Callable[[DataFrame], dict[str, Any]]] = {
    "deleted has rows of 'edge', which is not one of sources": lambda e: {"deleted": {"edge": e}},
    "inserted\\['edges'\\] has other columns than the source: src bigint": lambda e: {
        "inserted": {"edges": e.select("src")}
    },
    "deleted\\['edges'\\] is a list, not a DataFrame": lambda _: {"deleted": {"edges": [1]}},
    "sources is a list, not a mapping": lambda _: {"sources": []},
    "sources has the name 1, which is not a text": lambda e: {"sources": {1: e}},
    "old\\['old'\\] is a NoneType, not a DataFrame": lambda _: {"old": None},
    "old has the columns node bigint, but the result has node bigint, dist bigint": lambda e: {
        "old": e.selectExpr("src AS node")
    },
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_rows_are_refused(spark: SparkSession, message: str) -> None:
    edges, first = frame(spark, EDGES, [(0, 1, 1)]), frame(spark, STARTS, [(0, 0)])
    given = {
        "old": first,
        "sources": {"edges": edges, "starts": first},
        **CASES["shortest paths"],
        **WRONG[message](edges),
    }
    with pytest.raises(ra.UsageError, match=message) as caught:
        ra.maintain(given.pop("old"), **given)
    assert caught.value.code == "PARALAGG_MAINTAIN_ROWS"


def test_a_maintained_result_has_no_paths(spark: SparkSession) -> None:
    first = frame(spark, STARTS, [(0, 0)])
    options = {**CASES["shortest paths"], "aggs": {"dist": "min", "route": ra.path("dist")}}
    with pytest.raises(ra.UsageError, match="no paths and hops") as caught:
        ra.maintain(first, sources={"starts": first, "edges": frame(spark, EDGES, [(0, 1, 1)])}, **options)
    assert caught.value.code == "PARALAGG_PATH"


@pytest.mark.parametrize("changed", [True, False])
def test_rows_of_a_maintained_result_are_explained(spark: SparkSession, changed: bool) -> None:  # noqa: FBT001 - a case
    old = frame(spark, "node bigint, dist bigint", [(0, 0), (1, 4), (2, 8)])
    new_edges = [(0, 2, 3)] if changed else []
    edges = frame(spark, EDGES, [(0, 1, 4), (1, 2, 4), *new_edges]).alias("edges")
    new = ra.maintain(
        old,
        keys="node",
        aggs={"dist": "min"},
        sources={"edges": edges, "starts": frame(spark, STARTS, [(0, 0)])},
        inserted={"edges": frame(spark, EDGES, new_edges)} if changed else {},
        base=lambda t: t["starts"],
        step=walk,
    )
    assert new.kind == ("incremental" if changed else "none")
    assert ra.why(new.rows, node=2).depth == (2 if changed else 3)
    assert "no row with node = 9" in str(ra.why_not(new.rows, node=9))
    with pytest.raises(ra.UsageError, match="explains rows of"):
        ra.why(new.upserts, node=2)
