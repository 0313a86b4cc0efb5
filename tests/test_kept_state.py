"""A run that goes on from the last one's kept state reads changed rows alone, and has the rows of a full run.

Where the state does not fit, the shim raises ``PARALAGG_KEPT_STATE``, which is a ``StateLostError`` here. Where many
rows fall, it raises ``PARALAGG_MANY_FALL``, which is a ``NotMaintainableError``.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from kept_table import Table, edge
from test_maintain import CASES
from test_maintain_sums import edge as sum_edge

from pyspark_paralagg.backends.kept import StateLostError
from pyspark_paralagg.maintenance.continuation import NotMaintainableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotates(runs=3)

KEPT = (
    "shortest paths",
    "parents",
    "values that hide their origin",
    "widest paths",
    "components",
    "doubles",
    "distances of subsets",
    "reach",
    "names of components",
    "names of parents",
)
KEPT_SUMS = ("quantities", "paths", "two sums over a base of edges")
KEPT_AFTER_INSERTS = (*KEPT, "strings and nulls")
"""Deletes need all base rows. One of strings and nulls has a null, where those that the state has seen have none."""
SHARED, PARTITIONED = "100000", "0"
"""Values of ``spark.paralagg.broadcast.maxBytes``: the edges are in all tasks, or each task has its own."""


@pytest.fixture(params=[(1, "false"), (2, "true"), (7, "false")], ids=["1", "2, AQE", "7"])
def parallel(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    partitions, aqe = request.param
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    spark.conf.set("spark.sql.adaptive.enabled", aqe)
    return spark


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("case", KEPT_AFTER_INSERTS)
def test_it_equals_a_full_run(spark: SparkSession, case: str) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", (1, 2, 7)[KEPT_AFTER_INSERTS.index(case) % 3])
    continued_thrice(spark, case, PARTITIONED)


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("case", KEPT[::2])
def test_it_equals_a_full_run_where_tasks_share_the_edges(spark: SparkSession, case: str) -> None:
    continued_thrice(spark, case, SHARED)


def continued_thrice(spark: SparkSession, case: str, placement: str) -> None:
    spark.conf.set("spark.paralagg.broadcast.maxBytes", placement)
    rng = random.Random(case)  # noqa: S311 - the same each time
    table = Table(spark, case, [edge(rng, 14) for _ in range(20)])
    assert "kept" not in table.insert([edge(rng, 14), (2, 2, 0)])
    for nodes in (14, 30, 2_000):  # keys outside of the loaded range, too
        assert "from the kept state" in table.insert([edge(rng, nodes) for _ in range(6)])


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("case", KEPT)
def test_deletes_equal_a_full_run(spark: SparkSession, case: str) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", (2, 7, 1)[KEPT.index(case) % 3])
    spark.conf.set("spark.sql.adaptive.enabled", str(KEPT.index(case) % 2 == 0).lower())
    changed_often(spark, case, PARTITIONED)


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("case", KEPT[::2])
def test_deletes_equal_a_full_run_where_tasks_share_the_edges(spark: SparkSession, case: str) -> None:
    changed_often(spark, case, SHARED)


def changed_often(spark: SparkSession, case: str, placement: str) -> None:
    """Delete and insert edges, some of which have duplicates; then delete nearly all."""
    spark.conf.set("spark.paralagg.broadcast.maxBytes", placement)
    rng = random.Random(case)  # noqa: S311 - the same each time
    edges = [edge(rng, 14) for _ in range(24)]
    table = Table(spark, case, [*edges, *edges[:6], (2, 2, 0)])
    table.insert([edge(rng, 14)])
    for nodes, count in ((14, 5), (30, 1), (14, 8)):
        gone = rng.sample(table.edges, count)
        assert "from the kept state" in table.change([edge(rng, nodes) for _ in range(4)] + gone[:1], gone)
    assert "from the kept state" in table.insert([edge(rng, 20)])
    assert "from the kept state" in table.change([], table.edges[2:])


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("case", ["shortest paths", "parents", "distances of subsets"])
def test_base_rows_are_kept_once_a_row_was_deleted(parallel: SparkSession, case: str) -> None:
    parallel.conf.set("spark.paralagg.broadcast.maxBytes", PARTITIONED)
    rng = random.Random(case)  # noqa: S311 - likewise
    table = Table(parallel, case, [edge(rng, 14) for _ in range(24)])
    table.insert([edge(rng, 14)])
    assert table.state is not None
    assert not table.state.has_base
    for starts in ([(0, 0), (1, 3), (4, 1)], [(1, 3), (9, 2), (4, 2)], [(9, 2)], []):
        assert "from the kept state" in table.change([edge(rng, 14)], [], starts=list(starts))
        assert table.state.has_base
        table.insert([edge(rng, 14)])


def test_many_rows_that_fall_end_the_run(spark: SparkSession) -> None:
    table = Table(spark, "shortest paths", [(n, n + 1, 1) for n in range(1_500)])
    table.insert([(5, 2_000, 1)])
    assert "again from the kept state" in table.change(
        [], [(5, 2_000, 1)]
    )  # all rows are derived again, and have parents
    state = table.state
    with pytest.raises(NotMaintainableError, match=r"more than 1,000 of 1,501 stored rows may have lost their support"):
        table.change([], [(1, 2, 1)])
    assert state is not None
    assert not state.is_there(spark)


def test_no_limit_ends_a_kept_set_early(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few changed rows come to the driver by a LIMIT, which is no limit of the stored rows."""
    monkeypatch.setattr("pyspark_paralagg.maintenance.rows.MAX_DRIVER_ROWS", 50)
    spark.conf.set("spark.paralagg.broadcast.maxBytes", PARTITIONED)
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    table = Table(spark, "reach", [(n, n + 1, 1) for n in range(80) if n != 49])
    assert "ends at" not in table.insert([(1, 90, 1)])
    assert "ends at" not in table.insert([(49, 50, 1)])


def test_a_deleted_row_that_the_state_does_not_have(spark: SparkSession) -> None:
    table = Table(spark, "shortest paths", [(0, 3, 1), (3, 5, 1)])
    table.insert([(5, 6, 1)])
    table.edges.append((3, 9, 1))  # unknown to the state
    with pytest.raises(StateLostError, match="it does not have all deleted rows"):
        table.change([], [(3, 9, 1)])


def test_long_paths_that_new_edges_join(parallel: SparkSession) -> None:
    parallel.conf.set("spark.paralagg.broadcast.maxBytes", PARTITIONED)
    chain = [(n, n + 1, 1) for n in range(300) if n % 60 != 59]
    table = Table(parallel, "shortest paths", chain)
    table.insert([(59, 60, 1)])
    table.insert([(239, 240, 1)])  # joins no row yet
    table.insert([(119, 120, 1), (179, 180, 1)])
    assert len(table.rows) == 300
    table.insert([(5, 290, 1)])


@pytest.mark.parametrize("case", sorted(CASES.keys() - {*KEPT_AFTER_INSERTS}), ids=lambda case: case.replace(" ", "-"))
def test_programs_whose_state_is_not_kept(spark: SparkSession, case: str) -> None:
    rng = random.Random(case)  # noqa: S311 - likewise
    table = Table(spark, case, [edge(rng, 14) for _ in range(20)])
    if table.program.grows and not table.program.rejects({"edges"}):
        table.insert([edge(rng, 14)])
        assert table.state is None
    else:
        assert case == "two reads of the edges" or "anti join" in case


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ((3, 4, None), "has a null"),
        ((4, None, 1), "has a null"),
        ((3, 4, 1 << 40), "more than 32 bits"),
        ((None, 4, 1), None),
    ],
)
def test_rows_that_do_not_fit_the_state(spark: SparkSession, row: tuple[Any, ...], why: str | None) -> None:
    spark.conf.set("spark.paralagg.broadcast.maxBytes", PARTITIONED)
    table = Table(spark, "shortest paths", [(0, 3, 1), (3, 5, 1)])
    table.insert([(5, 6, 1)])
    if why is None:
        table.insert([row])
        return
    with pytest.raises(StateLostError, match=why):
        table.insert([row])
    assert table.state is not None
    assert not table.state.is_there(spark)


def test_names_that_come_later_compare_as_strings(parallel: SparkSession) -> None:
    """The least name of a component is that of a new row, before and after all names that the state has."""
    parallel.conf.set("spark.paralagg.broadcast.maxBytes", PARTITIONED)
    table = Table(parallel, "names of components", [(50, 51, 1), (51, 52, 1), (7, 8, 1)])
    table.insert([(52, 53, 1)])
    assert table.rows_of("n53") == [("n53", "n50")]
    for new, least in (((49, 50, 1), "n49"), ((53, 500, 1), "n49"), ((500, 10, 1), "n49"), ((10, 9, 1), "n10")):
        assert "from the kept state" in table.insert([new])
        assert table.rows_of("n53") == [("n53", least)]
    assert "from the kept state" in table.change([], [(500, 10, 1)])
    assert table.rows_of("n53") == [("n53", "n49")]


def test_a_lost_state_is_noticed(spark: SparkSession) -> None:
    table = Table(spark, "shortest paths", [(0, 3, 1), (3, 5, 1)])
    table.insert([(5, 6, 1)])
    state = table.state
    assert state is not None
    assert state.is_there(spark)
    state.free(spark)
    assert not state.is_there(spark)
    with pytest.raises(StateLostError, match="executors have the states of 0 tasks, and the run has"):
        table.insert([(6, 7, 1)])


def test_a_run_of_more_tasks_than_the_state(spark: SparkSession) -> None:
    table = Table(spark, "shortest paths", [(0, 3, 1), (3, 5, 1)])
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    table.insert([(5, 6, 1)])
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    with pytest.raises(StateLostError, match="executors have the states of 2 tasks, and the run has 3"):
        table.insert([(6, 7, 1)])


def test_a_run_that_fails_leaves_no_state(spark: SparkSession) -> None:
    table = Table(spark, "shortest paths", [(0, 3, 1), (3, 5, 1)], assume="w >= 0")
    table.insert([(5, 6, 1)])
    state = table.state
    assert state is not None
    with pytest.raises(Exception, match="PARALAGG_ASSUMPTION_VIOLATED"):
        table.insert([(6, 7, -1)])
    assert not state.is_there(spark)


def test_an_endless_climb_is_left_to_a_run_from_the_stored_rows(spark: SparkSession) -> None:
    table = Table(spark, "shortest paths", [(0, 3, 1), (3, 5, 1)])
    table.insert([(5, 6, 1)])
    with pytest.raises(StateLostError, match="values climb endlessly"):
        table.insert([(5, 3, -2)])


def test_another_step_is_noticed(spark: SparkSession) -> None:
    table, other = (Table(spark, case, [(0, 3, 1)]) for case in ("shortest paths", "values that hide their origin"))
    table.insert([(5, 6, 1)])
    other.state = table.state
    with pytest.raises(StateLostError, match="the step is analysed in another way"):
        other.insert([(6, 7, 1)])


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("case", KEPT_SUMS)
def test_sums_equal_a_full_run(parallel: SparkSession, case: str) -> None:
    """Sums that lose a contribution are added up anew, with what they add to others; new contributions come on top."""
    parallel.conf.set("spark.paralagg.broadcast.maxBytes", PARTITIONED)
    rng = random.Random(case)  # noqa: S311 - the same each time
    nulls = case != "two sums over a base of edges"  # which reads w twice, so a state has to expect nulls of it

    def drawn(count: int) -> list[tuple[Any, ...]]:
        edges = [sum_edge(rng) for _ in range(count)]
        return [(src, dst, w if nulls or w is not None else 4) for src, dst, w in edges]

    table = Table(parallel, case, [*drawn(20), (3, 4, None if nulls else 2)])
    table.change(drawn(2), [])
    for turn in range(5):
        gone = rng.sample(table.edges, turn)
        updated = [(*edge[:2], 7) for edge in gone[:1]]
        starts = [*table.starts[1:], (rng.randrange(12), 2)] if turn % 2 else None
        assert "from the kept state" in table.change([*drawn(2), *updated], gone, starts)


def test_each_copy_of_a_row_counts_in_a_sum(spark: SparkSession) -> None:
    table = Table(spark, "quantities", [(1, 2, 3), (1, 2, 3), (2, 3, 1)])
    table.insert([(3, 4, 1)])
    assert table.rows_of(4) == [(4, 60)]  # two starts of 5, along two edges of 3
    assert "from the kept state" in table.change([], [(1, 2, 3)])
    assert table.rows_of(4) == [(4, 30)]
    assert "from the kept state" in table.change([], [(1, 2, 3)], [(0, 1), (1, 5)])
    assert [table.rows_of(node) for node in (1, 2, 3, 4)] == [[(1, 5)], [], [], []]
    assert "from the kept state" in table.change([(1, 3, 2), (1, 3, -2)], [])
    assert [table.rows_of(node) for node in (3, 4)] == [[(3, 0)], [(4, 0)]]  # a sum of 0 is a row


def test_sums_that_climb_or_overflow_are_left_to_a_run_from_the_stored_rows(spark: SparkSession) -> None:
    for new, why in (((4, 1, 1), "values climb endlessly"), ((4, 5, 2), "values climb endlessly|a sum overflows")):
        table = Table(spark, "quantities", [(1, 4, 1), (4, 5, 1), (1, 5, 1)])
        table.insert([(5, 6, 1)])
        if new[1] == 5:
            table.change([], [], [(1, 2**61)])
        with pytest.raises(StateLostError, match=why):
            table.insert([new, *[(4, 6, 2)] * (new[1] == 5)])
