"""``$COLLECT_SET(x, n)``: sets of bounded size in texts, on each engine, and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from test_collect_set import EDGES, on_ranks, oracle

import pyspark_paralagg as ra
from pyspark_paralagg.command.cli import OK, main

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotates(runs=3)

ANCESTORS = """
.decl edge(x: number, y: number)
.input edge
seen(x, $COLLECT_SET(x, 3)) :- edge(x, _) ; edge(_, x).
seen(y, $COLLECT_SET(s, 3)) :- seen(x, s), edge(x, y).
.output seen
"""
EXPECTED = oracle(3)

OWNERS = """
.decl owns(a: symbol, b: symbol)
.decl share(a: symbol, b: symbol, v: float)
.decl vs(b: symbol, v: float)
.input owns, share
owners("w", "zed").
owners(y, $COLLECT_SET(x, 3)) :- owns(x, y), !owns(_, x).
owners(y, $COLLECT_SET(s, 3)) :- owners(x, s), owns(x, y).
two(y, $COLLECT_SET(s, 2)) :- owners(y, s).          // a lower stratum, with a smaller limit
copy(s) :- owners(_, s).
same(x, y) :- owners(x, s), owners(y, s), x < y.
vs(b, 7) :- share(_, b, _).                          // a number in a set of floats
vs(b, $COLLECT_SET(v, 2)) :- share(_, b, v).
vs(b, $COLLECT_SET(s, 2)) :- vs(a, s), share(a, b, _).
.output owners, two, copy, same, vs
"""
OWNS = [("ann", "x"), ("bob", "x"), ("x", "y"), ("y", "z"), ("z", "y"), ("cid", "z"), ("w", "x")]
SHARES = [("a", "b", 1.5), ("b", "a", -2.0), ("b", "c", 0.25)]
FOUND = {
    "owners": "w\t[zed]\nx\t[ann, bob, w]\ny\t[ann, bob, cid]\nz\t[ann, bob, cid]\n",
    "two": "w\t[zed]\nx\t[ann, bob]\ny\t[ann, bob]\nz\t[ann, bob]\n",
    "copy": "[ann, bob, cid]\n[ann, bob, w]\n[zed]\n",
    "same": "y\tz\n",
    "vs": "a\t[-2.0, 1.5]\nb\t[-2.0, 1.5]\nc\t[-2.0, 0.25]\n",
}


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_least_elements_of_the_spark_engine(spark: SparkSession, partitions: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    edges = spark.createDataFrame(EDGES, "x long, y long").repartition(partitions)
    seen = ra.datalog(spark, ANCESTORS, edge=edges, backend="spark")["seen"]
    assert [t for _, t in seen.dtypes] == ["bigint", "array<bigint>"]
    assert sorted(map(tuple, seen.collect())) == EXPECTED


@pytest.mark.parametrize("ranks", [0, 1, 2])
def test_least_elements_of_other_engines_of_a_session(spark: SparkSession, ranks: int) -> None:
    backend = on_ranks(spark, ranks) if ranks else "dataframe"
    edges = spark.createDataFrame(EDGES, "x long, y long")
    assert sorted(map(tuple, ra.datalog(spark, ANCESTORS, edge=edges, backend=backend)["seen"].collect())) == EXPECTED


@pytest.mark.parametrize("ranks", [1, 2, 7])
def test_least_elements_without_spark(tmp_path: Path, ranks: int) -> None:
    pytest.importorskip("numba", reason="the MPI engine needs numba")
    (tmp_path / "seen.dl").write_text(ANCESTORS)
    (tmp_path / "edge.facts").write_text("".join(f"{x}\t{y}\n" for x, y in EDGES))
    command = ["run", str(tmp_path / "seen.dl"), "--facts", str(tmp_path), "--out", str(tmp_path), "--quiet"]
    assert main([*command, "--format", "parquet", *on(ranks)]) == OK
    rows = pq.read_table(tmp_path / "seen.parquet").to_pylist()
    assert sorted(tuple(r.values()) for r in rows) == EXPECTED


def on(ranks: int) -> list[str]:
    """Return the options for a number of ranks; 0 is the Spark engine."""
    if ranks < 2:
        return ["--backend", "local" if ranks else "spark"]
    pytest.importorskip("mpi4py", reason="ranks need mpi4py")
    return ["--backend", "mpi", "--ranks", str(ranks), "--conf", "spark.paralagg.mpi.oversubscribe=true"]


@pytest.mark.parametrize("ranks", [1, 3])
def test_sets_of_texts_and_floats_without_spark(tmp_path: Path, ranks: int) -> None:
    pytest.importorskip("numba", reason="the MPI engine needs numba")
    (tmp_path / "owners.dl").write_text(OWNERS)
    for name, rows in (("owns", OWNS), ("share", SHARES)):
        (tmp_path / f"{name}.facts").write_text("".join("\t".join(map(str, r)) + "\n" for r in rows))
    command = ["run", str(tmp_path / "owners.dl"), "--facts", str(tmp_path), "--out", str(tmp_path), "--quiet"]
    assert main([*command, *on(ranks)]) == OK
    assert {name: (tmp_path / f"{name}.csv").read_text() for name in FOUND} == FOUND


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_sets_of_texts_and_floats_on_spark(spark: SparkSession, backend: str) -> None:
    owns = spark.createDataFrame(OWNS, "a string, b string")
    shares = spark.createDataFrame(SHARES, "a string, b string, v double")
    relations = ra.datalog(spark, OWNERS, owns=owns, share=shares, backend=backend)
    for name, expected in FOUND.items():
        rows = relations[name].collect()
        assert sorted("\t".join(map(_text, r)) for r in rows) == expected.splitlines(), name
    relations.unpersist()


def _text(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def test_rows_of_an_input_have_elements(spark: SparkSession, tmp_path: Path) -> None:
    text = ".decl r(x: number, s: symbol)\n.input r\nr(y, $COLLECT_SET(s, 2)) :- r(x, s), y = x + 1, y < 4.\n.output r"
    rows = spark.createDataFrame([(1, "b"), (1, None), (1, "a"), (1, "c")], "x int, s string")
    expected = [(n, ["a", "b"]) for n in (1, 2, 3)]
    assert sorted(map(tuple, ra.datalog(spark, text, r=rows)["r"].collect())) == expected
    (tmp_path / "r.dl").write_text(text)
    (tmp_path / "r.facts").write_text("1\tb\n1\ta\n1\tc\n")
    command = ["run", str(tmp_path / "r.dl"), "--facts", str(tmp_path), "--out", str(tmp_path), "--quiet"]
    assert main([*command, *on(1)]) == OK
    assert (tmp_path / "r.csv").read_text() == "".join(f"{n}\t[a, b]\n" for n in (1, 2, 3))
    arrays = rows.selectExpr("x", "array(s) AS s")
    with pytest.raises(ra.UsageError, match="s of r is a symbol") as caught:
        ra.datalog(spark, text, r=arrays)
    assert caught.value.code == "PARALAGG_DATALOG_INPUT"


EDGE = ".decl e(x: number, y: number)\n.input e\n"
FIRST = "r(y, $COLLECT_SET(x, 3)) :- e(x, y).\n"


@pytest.mark.parametrize(
    ("rules", "code", "message"),
    [
        ("r(y, $COLLECT_SET(x)) :- e(x, y).", "PARALAGG_DATALOG_AGGREGATE", "largest number of elements"),
        ("r(y, $COLLECT_SET(x, 0)) :- e(x, y).", "PARALAGG_DATALOG_AGGREGATE", "largest number of elements"),
        ("r(y, $COLLECT_SET(x, y)) :- e(x, y).", "PARALAGG_DATALOG_AGGREGATE", "largest number of elements"),
        ("r(y, $COLLECT_SET(x, 2.5)) :- e(x, y).", "PARALAGG_DATALOG_AGGREGATE", "largest number of elements"),
        (FIRST + "r(y, $COLLECT_SET(s, 4)) :- r(x, s), e(x, y).", "PARALAGG_DATALOG_AGGREGATE", "at most 4 elements"),
        (FIRST + "r(y, $MIN(s)) :- r(x, s), e(x, y).", "PARALAGG_DATALOG_AGGREGATE", r"has \$MIN here"),
        (FIRST + "r(y, $COLLECT_SET(s + 1, 3)) :- r(x, s), e(x, y).", "PARALAGG_DATALOG_TYPE", "a set of number"),
        (FIRST + 'r(y, "a") :- e(_, y).', "PARALAGG_DATALOG_TYPE", "set of symbol"),
        (FIRST + ".decl q(s: number)\nq(s) :- r(_, s).", "PARALAGG_DATALOG_TYPE", "here it is a set of number"),
        (FIRST + "q(y) :- r(y, 1).", "PARALAGG_DATALOG_TYPE", "set of number"),
        ("r(y, $COLECT_SET(x, 3)) :- e(x, y).", "PARALAGG_UNKNOWN_AGGREGATE", r"is not an aggregate"),
    ],
)
def test_errors_have_their_code_and_place(spark: SparkSession, rules: str, code: str, message: str) -> None:
    with pytest.raises(ra.DatalogError, match=message) as caught:
        ra.datalog(spark, EDGE + rules, e=spark.createDataFrame([(1, 2)], "x long, y long"))
    assert caught.value.code == code
    assert "line" in str(caught.value)


def test_sets_that_shrink_in_a_recursion_are_not_proved(spark: SparkSession) -> None:
    rules = FIRST + "q(y, $COLLECT_SET(s, 2)) :- r(y, s).\nr(y, $COLLECT_SET(s, 3)) :- q(x, s), e(x, y)."
    edges = spark.createDataFrame([(1, 2)], "x long, y long")
    with pytest.raises(ra.VerificationError) as caught:
        ra.datalog(spark, EDGE + rules, e=edges)["r"].collect()
    assert caught.value.code == "PARALAGG_NOT_PROVED"


def test_sets_of_a_text_are_not_explained(spark: SparkSession) -> None:
    edges = spark.createDataFrame(EDGES, "x long, y long")
    with pytest.raises(ra.UnsupportedError, match="explained without sets") as caught:
        ra.why(ra.datalog(spark, ANCESTORS, edge=edges)["seen"], c0=EDGES[0][0])
    assert caught.value.code == "PARALAGG_WHY_UNSUPPORTED"
    assert "ra.collect_set" in str(caught.value.hint)
