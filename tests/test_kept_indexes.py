"""A query over indexes that an earlier one has left reads its base rows alone, and has the rows of a query of its own.

If the rows of a static input may be others, the query loads them: ``ra.report`` shows which it did.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import test_maintain
import test_maintain_sums
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import frame
from test_maintain import EDGES, STARTS, values, walk

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Tables = Mapping[str, DataFrame]
    Rows = list[tuple[Any, ...]]

KEEP = "spark.paralagg.keepIndexes"
CASES = {
    "paths from several starts": {  # the step computes keys
        "keys": ["start", "node"],
        "aggs": {"dist": "min"},
        "base": lambda t: t["starts"].selectExpr("node AS start", "node", "dist"),
        "step": lambda d, t: d.join(t["edges"], d.node == t["edges"].src).selectExpr(
            "start", "dst AS node", "dist + w AS dist"
        ),
    },
    "greatest names": {  # of which later queries bring others, between the first ones
        "keys": "node",
        "aggs": {"dist": "max"},
        "base": lambda t: t["starts"].selectExpr("concat('n', node) AS node", "concat('n', dist) AS dist"),
        "step": lambda d, t: test_maintain.label(d, {"edges": test_maintain.names(t)}),
    },
    **{
        name: test_maintain.CASES[name]
        for name in (
            "shortest paths",
            "names of parents",
            "strings and nulls",
            "components",
            "an anti join in the step",
            "who controls whom",
            "distances of subsets",
        )
    },
    "quantities": test_maintain_sums.CASES["quantities"],
}
SETTINGS = [  # partitions, AQE, the most bytes of an index that all tasks have, the most rows for a loop in one task
    ("1", "false", "0", "0"),
    ("2", "true", "100000", "0"),
    ("2", "false", "0", "1000000"),
    ("7", "true", "0", "0"),
    ("7", "false", "100000", "1000000"),
]


@pytest.fixture
def keeping(spark: SparkSession) -> Iterator[SparkSession]:
    """Give a session whose recursions keep their indexes, and spread no hubs, which would exclude that."""
    spark.conf.set(KEEP, "true")
    spark.conf.set("spark.paralagg.heavyParts", "0")
    yield spark
    free(spark)


def names(spark: SparkSession) -> list[int]:
    """Return the names of states of which the first task's part is there."""
    bridge = spark.sparkContext._jvm.org.apache.spark.sql.paralagg.Bridge
    newest = bridge.keptName(spark._jsparkSession)
    return [n for n in range(max(0, newest - 1_000), newest) if bridge.hasKept(spark._jsparkSession, n)]


def free(spark: SparkSession) -> None:
    """Remove all kept indexes, as Spark does if it needs their memory."""
    for name in names(spark):
        spark.sparkContext._jvm.org.apache.spark.sql.paralagg.Bridge.freeKept(spark._jsparkSession, name)
    wait_for(lambda: not names(spark))


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds: blocks are removed in the background."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def run(case: dict[str, Any], tables: Tables) -> tuple[set[tuple[Any, ...]], str]:
    """Return the rows, and the form of the run."""
    found = case["base"](tables).recursive_agg(
        case["keys"], case.get("aggs"), step=lambda d: case["step"](d, tables), backend="spark", mode="trust"
    )
    rows = values(found.collect())
    done = ra.report(found)
    assert done is not None
    assert done.tuples >= len(rows)
    return rows, done.form


def paths(edges: DataFrame, *starts: tuple[int, int]) -> tuple[set[tuple[Any, ...]], bool]:
    """Return shortest paths from nodes, and whether they come from kept indexes."""
    spark = edges.sparkSession
    rows, form = run(test_maintain.CASES["shortest paths"], {"edges": edges, "starts": frame(spark, STARTS, starts)})
    return rows, "kept indexes" in form


def stored(spark: SparkSession, path: Path, rows: Rows, mode: str = "error") -> DataFrame:
    frame(spark, EDGES, rows).repartition(3).write.mode(mode).parquet(str(path))
    return spark.read.parquet(str(path))


@pytest.mark.rotates(runs=5, by=["case"])
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("case", CASES)
def test_it_has_the_rows_of_a_query_of_its_own(keeping: SparkSession, tmp_path: Path, case: str, settings: Any) -> None:  # noqa: ANN401
    spark = keeping
    for key, value in zip(
        ("sql.shuffle.partitions", "sql.adaptive.enabled", "paralagg.broadcast.maxBytes", "paralagg.oneTask.maxRows"),
        settings,
        strict=True,
    ):
        spark.conf.set(f"spark.{key}", value)
    rng = random.Random(case)  # noqa: S311 - the same each time
    edges = [(*sorted(rng.sample(range(14), 2)), rng.randrange(1, 6)) for _ in range(26)]  # acyclic, for sums
    tables: dict[str, DataFrame] = {"edges": stored(spark, tmp_path / "edges", edges).alias("edges")}
    forms = []
    for turn in range(4):
        # Later starts are new nodes, too: 14 to 17 have no edge.
        starts = [(rng.randrange(18 if turn else 14), rng.randrange(1, 5)) for _ in range(3)]
        schema = test_maintain_sums.STARTS if case == "quantities" else STARTS
        tables["starts"] = frame(spark, schema, [s for s in starts if s[0] != 1])  # 1 is null in "strings and nulls"
        spark.conf.set(KEEP, "false")
        expected, _ = run(CASES[case], tables)
        spark.conf.set(KEEP, "true")
        found, form = run(CASES[case], tables)
        assert found == expected
        forms.append(form)
    if forms[0] != "one carried value at a time":  # which has no kept form
        assert ["kept indexes" in form for form in forms] == [False, True, True, True]


def test_other_files_are_other_rows(keeping: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "edges"
    edges = stored(keeping, path, [(0, 1, 4), (1, 2, 4)])
    assert paths(edges, (0, 0)) == ({(0, 0), (1, 4), (2, 8)}, False)
    assert paths(keeping.read.parquet(str(path)), (1, 0)) == ({(1, 0), (2, 4)}, True)
    edges = stored(keeping, path, [(0, 2, 1)], "append")
    assert paths(edges, (0, 0)) == ({(0, 0), (1, 4), (2, 1)}, False)
    assert paths(edges, (0, 1)) == ({(0, 1), (1, 5), (2, 2)}, True)
    edges = stored(keeping, path, [(0, 2, 3), (1, 2, 4)], "overwrite")  # as many bytes as the first
    assert paths(edges, (0, 0)) == ({(0, 0), (2, 3)}, False)


def test_filters_and_columns_are_part_of_the_rows(keeping: SparkSession, tmp_path: Path) -> None:
    edges = stored(keeping, tmp_path / "edges", [(0, 1, 4), (1, 2, 4), (0, 2, 9)])
    less, more = edges.where("w < 5"), edges.where("w < 10")
    assert paths(less, (0, 0)) == ({(0, 0), (1, 4), (2, 8)}, False)
    assert paths(more.where("w > 5"), (0, 0)) == ({(0, 0), (2, 9)}, False)
    assert paths(edges.where("w < 5"), (0, 0)) == ({(0, 0), (1, 4), (2, 8)}, True)
    turned = edges.selectExpr("dst AS src", "src AS dst", "w")
    assert paths(turned, (2, 0)) == ({(2, 0), (1, 4), (0, 8)}, False)
    literals = [edges.where(f"concat(w, '') IN ({values})") for values in ("'4,9'", "'4', '9'")]
    assert paths(literals[0], (0, 0)) == ({(0, 0)}, False)
    assert paths(literals[1], (0, 0)) == ({(0, 0), (1, 4), (2, 8)}, False)


def test_the_rows_of_a_cached_table_are_known_while_it_is_cached(keeping: SparkSession) -> None:
    edges = frame(keeping, EDGES, [(0, 1, 4), (1, 2, 4)]).where("w > 0").cache()
    assert paths(edges, (0, 0)) == ({(0, 0), (1, 4), (2, 8)}, False)
    assert paths(edges, (1, 1)) == ({(1, 1), (2, 5)}, True)
    edges.unpersist()
    again = edges.cache()
    assert paths(again, (1, 1)) == ({(1, 1), (2, 5)}, False)
    again.unpersist()


@pytest.mark.parametrize(
    "side",
    ["src + rand() >= src", "EXISTS (SELECT 1 FROM nodes WHERE id = src)"],
    ids=["a random filter", "a subquery"],
)
def test_rows_that_may_be_others_are_loaded(keeping: SparkSession, tmp_path: Path, side: str) -> None:
    keeping.range(3).createOrReplaceTempView("nodes")
    edges = stored(keeping, tmp_path / "edges", [(0, 1, 4), (1, 2, 4)]).where(side)
    for _ in range(2):
        assert paths(edges, (0, 0)) == ({(0, 0), (1, 4), (2, 8)}, False)


def test_nulls_that_the_indexes_do_not_expect(keeping: SparkSession, tmp_path: Path) -> None:
    edges = stored(keeping, tmp_path / "edges", [(0, 1, 4), (1, 2, 4)])
    assert paths(edges, (0, 0)) == ({(0, 0), (1, 4), (2, 8)}, False)
    assert paths(edges, (0, 0), (1, None)) == ({(0, 0), (1, 4), (2, 8)}, False)
    assert paths(edges, (1, 0), (5, None)) == ({(1, 0), (2, 4), (5, None)}, True)  # nulls are known from now on


def test_evicted_indexes_are_loaded_again(keeping: SparkSession, tmp_path: Path) -> None:
    edges = stored(keeping, tmp_path / "edges", [(0, 1, 4), (1, 2, 4)])
    assert [paths(edges, (0, n))[1] for n in range(2)] == [False, True]
    free(keeping)
    assert [paths(edges, (0, n))[1] for n in range(2)] == [False, True]


def test_what_is_left_of_evicted_indexes_is_freed(keeping: SparkSession, tmp_path: Path) -> None:
    edges = stored(keeping, tmp_path / "edges", [(0, 1, 4), (1, 2, 4)])
    assert not paths(edges, (0, 0))[1]
    [name] = names(keeping)
    spark = keeping.sparkContext._jvm.org.apache.spark
    spark.SparkEnv.get().blockManager().removeBlock(spark.storage.RDDBlockId(name, 1), True)  # noqa: FBT003 - Java's
    assert names(keeping) == [name]
    assert [paths(edges, (0, n))[1] for n in range(2)] == [False, True]
    wait_for(lambda: len(names(keeping)) == 1)


def test_more_tasks_and_other_settings_of_sql_load_anew(keeping: SparkSession, tmp_path: Path) -> None:
    edges = stored(keeping, tmp_path / "edges", [(0, 1, 4), (1, 2, 4)])
    assert [paths(edges, (0, n))[1] for n in range(2)] == [False, True]
    keeping.conf.set("spark.sql.shuffle.partitions", "3")
    assert [paths(edges, (0, n))[1] for n in range(2)] == [False, True]
    keeping.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert [paths(edges, (0, n))[1] for n in range(2)] == [False, True]


def test_a_query_that_fails_leaves_no_indexes(keeping: SparkSession, tmp_path: Path) -> None:
    edges = stored(keeping, tmp_path / "edges", [(0, 1, 4), (1, 2, 4), (3, 4, -1), (4, 3, -1)])
    assert [paths(edges, (0, n))[1] for n in range(2)] == [False, True]
    with pytest.raises(Exception, match=r"PARALAGG_NO_FIXPOINT.*a cycle never ends, \(node=[34]\) -> \(node=[34]\)"):
        paths(edges, (3, 0))
    assert paths(edges, (1, 0)) == ({(1, 0), (2, 4)}, False)


def test_queries_at_once_leave_the_indexes_of_one(keeping: SparkSession, tmp_path: Path) -> None:
    edges = stored(keeping, tmp_path / "edges", [(n, n + 1, 1) for n in range(200)])

    def query(start: int) -> bool:
        found, _ = paths(edges, (start, 0))
        return found == {(n, n - start) for n in range(start, 201)}

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(query, range(9)))
    assert paths(edges, (198, 0)) == ({(198, 0), (199, 1), (200, 2)}, True)
    twice = [edges.sparkSession.range(n, n + 1).selectExpr("id AS node", "0L AS dist") for n in (197, 199)]
    both = [
        base.recursive_agg("node", {"dist": "min"}, step=lambda d: walk(d, {"edges": edges}), backend="spark")
        for base in twice
    ]
    assert values(both[0].unionAll(both[1]).collect()) == {(n, n - s) for s in (197, 199) for n in range(s, 201)}


def test_the_last_eight_stay(keeping: SparkSession, tmp_path: Path) -> None:
    edges = stored(keeping, tmp_path / "edges", [(0, 1, 4), (1, 2, 4)])
    for n in range(12):
        assert not paths(edges.where(F.col("w") < 10 + n), (0, 0))[1]
    wait_for(lambda: len(names(keeping)) == 8)
    assert not paths(edges.where("w < 10"), (0, 0))[1]
    assert paths(edges.where("w < 21"), (0, 0))[1]


def test_freed_indexes_are_loaded_anew(keeping: SparkSession, tmp_path: Path) -> None:
    edges = stored(keeping, tmp_path / "edges", [(0, 1, 4), (1, 2, 4)])
    assert [paths(edges, (0, n))[1] for n in range(2)] == [False, True]
    ra.free_indexes(keeping.newSession())
    wait_for(lambda: not names(keeping))
    assert [paths(edges, (0, n))[1] for n in range(2)] == [False, True]
    ra.free_indexes()
    ra.free_indexes()  # without effect
    wait_for(lambda: not names(keeping))


def test_nothing_is_freed_without_a_session(keeping: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert keeping
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(ra.UsageError, match=r"PARALAGG_NO_SESSION.*ra.free_indexes finds no active Spark session"):
        ra.free_indexes()


def test_a_wrong_setting_is_an_error(keeping: SparkSession, tmp_path: Path) -> None:
    keeping.conf.set(KEEP, "yes")
    edges = stored(keeping, tmp_path / "edges", [(0, 1, 4)])
    with pytest.raises(Exception, match=r"PARALAGG_BAD_CONF.*keepIndexes is 'yes', which is not true or false"):
        paths(edges, (0, 0))
