"""What recursive queries in SQL give: as DuckDB, and as the same recursion said by ``recursive_agg``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rows import assert_same_rows, rows_of

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

Rows = list[tuple[object, ...]]
Run = "Callable[[str], Rows]"

REACH = """
    WITH RECURSIVE reach(node) AS (
        SELECT CAST(0 AS BIGINT) UNION SELECT e.dst FROM reach JOIN graph e ON reach.node = e.src)
    SELECT node FROM reach"""

# The text in Spark's SQL, and in DuckDB's where that is another.
SAME = {
    "reachability over cycles": (REACH, REACH),
    "all pairs, two self-references": (
        """WITH RECURSIVE path(a, b) AS (
            SELECT src, dst FROM graph UNION SELECT p.a, q.b FROM path p JOIN path q ON p.b = q.a)
        SELECT * FROM path""",
        """WITH RECURSIVE path(a, b) AS (
            SELECT src, dst FROM graph UNION SELECT p.a, e.dst FROM path p JOIN graph e ON p.b = e.src)
        SELECT * FROM path""",
    ),
    "same generation": (
        """WITH RECURSIVE sg AS (
            SELECT p.child AS x, q.child AS y FROM parent p JOIN parent q ON p.parent = q.parent AND p.child <> q.child
            UNION SELECT p.child, q.child FROM sg JOIN parent p ON p.parent = sg.x JOIN parent q ON q.parent = sg.y)
        SELECT x, y FROM sg""",
        None,
    ),
    "shortest paths": (
        """WITH RECURSIVE sp(node, min() AS dist) AS (
            SELECT 0, 0 UNION SELECT e.dst, sp.dist + e.w FROM sp JOIN graph e ON sp.node = e.src)
        SELECT node, dist FROM sp""",
        """WITH RECURSIVE sp(node, dist) USING KEY (node, min(dist)) AS (
            SELECT 0::BIGINT, 0::BIGINT UNION SELECT e.dst, sp.dist + e.w FROM sp JOIN graph e ON sp.node = e.src)
        SELECT node, dist FROM sp""",
    ),
    "components": (
        """WITH RECURSIVE both AS (SELECT src, dst FROM graph UNION ALL SELECT dst, src FROM graph),
            cc(node, min() AS comp) AS (
                SELECT src, src FROM both UNION SELECT b.dst, cc.comp FROM cc JOIN both b ON cc.node = b.src)
        SELECT node, comp FROM cc""",
        """WITH RECURSIVE both_ AS (SELECT src, dst FROM graph UNION ALL SELECT dst, src FROM graph),
            cc(node, comp) USING KEY (node, min(comp)) AS (
                SELECT src, src FROM both_ UNION SELECT b.dst, cc.comp FROM cc JOIN both_ b ON cc.node = b.src)
        SELECT node, comp FROM cc""",
    ),
    "bill of materials": (
        """WITH RECURSIVE need(part, sum() AS qty) AS (
            SELECT 0, 1 UNION SELECT p.part, n.qty * p.qty FROM need n JOIN parts p ON n.part = p.whole)
        SELECT part, qty FROM need""",
        """WITH RECURSIVE need(part, qty) AS (
            SELECT 0::BIGINT, 1::BIGINT
            UNION ALL SELECT p.part, n.qty * p.qty FROM need n JOIN parts p ON n.part = p.whole)
        SELECT part, sum(qty)::BIGINT FROM need GROUP BY part""",
    ),
    "counted paths": (
        """WITH RECURSIVE ways(count() AS n, part) AS (
            SELECT 1, 0 UNION ALL SELECT w.n, p.part FROM ways w JOIN parts p ON w.part = p.whole)
        SELECT part, n FROM ways""",
        """WITH RECURSIVE ways(part) AS (
            SELECT 0::BIGINT UNION ALL SELECT p.part FROM ways w JOIN parts p ON w.part = p.whole)
        SELECT part, count(*) FROM ways GROUP BY part""",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_rows_are_duckdbs(name: str, run: Callable[[str], Rows], oracle: Callable[[str], Rows]) -> None:
    ours, theirs = SAME[name]
    expected = oracle(theirs or ours)
    assert len(expected) >= 10
    assert_same_rows(run(ours), expected)


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("partitions", [1, 7])
def test_partitions_and_aqe_change_nothing(
    spark: SparkSession, run: Callable[[str], Rows], oracle: Callable[[str], Rows], partitions: int, adaptive: str
) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    for name in ("shortest paths", "bill of materials"):
        ours, theirs = SAME[name]
        assert_same_rows(run(ours), oracle(theirs or ours))


def test_the_rows_are_those_of_recursive_agg(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    """The nearest start and the way there: ``min_by`` follows ``min``."""
    found = run(
        """WITH RECURSIVE sp(node, min() AS dist, min_by(dist) AS parent) AS (
            SELECT 0, 0, -1 UNION SELECT e.dst, sp.dist + e.w, sp.node FROM sp JOIN graph e ON sp.node = e.src)
        SELECT * FROM sp"""
    )
    edges = spark.table("graph")
    said = spark.sql("SELECT 0L AS node, 0L AS dist, -1L AS parent").recursive_agg(
        "node",
        {"dist": "min", "parent": ra.min_by("dist")},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.w).alias("dist"), d.node.alias("parent")
        ),
    )
    assert_same_rows(found, rows_of(said))


def test_a_wide_column_is_no_matter(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    """Spark shortens the name of a struct of more than 25 fields."""
    fields = ", ".join(f"'f{n}', {n}" for n in range(30))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW wide AS SELECT src, dst, named_struct({fields}) AS s FROM few")  # noqa: S608
    found = run("WITH RECURSIVE r(n) AS (SELECT 2L UNION SELECT e.dst FROM r JOIN wide e ON r.n = e.src) TABLE r")
    assert_same_rows(found, [(1,), (2,), (3,), (4,)])
    wide = spark.table("wide")
    said = spark.sql("SELECT 2L AS n").recursive_agg(
        "n", step=lambda r: r.join(wide, r.n == wide.src).select(wide.dst.alias("n")), backend="spark"
    )
    assert_same_rows(rows_of(said), found)
    join = "JOIN wide e ON r.n = e.src AND e.s.f29 = 29"
    of_field = f"WITH RECURSIVE r(n) AS (SELECT 2L UNION SELECT e.dst FROM r {join}) TABLE r"  # noqa: S608 - as above
    assert_same_rows(run(of_field), found)


def test_two_relations_read_each_other(run: Callable[[str], Rows]) -> None:
    text = """WITH RECURSIVE
        even(n) AS (SELECT 0 UNION SELECT n + 1 FROM odd WHERE n < 9),
        odd(n) AS (SELECT n + 1 FROM even)
        SELECT n, 'even' FROM even UNION ALL SELECT n, 'odd' FROM odd"""
    assert_same_rows(run(text), [(n, "odd" if n % 2 else "even") for n in range(10)])


def test_several_relations_with_aggregates_read_each_other_and_one_between_them_reads_none(
    run: Callable[[str], Rows],
) -> None:
    """``one`` stands after ``even``, which reads it through ``odd``."""
    text = """WITH RECURSIVE
        even(node, min() AS d) AS (SELECT 1, 0 UNION SELECT e.dst, odd.d + e.w FROM odd JOIN few e ON node = src),
        one AS (SELECT 0 AS nothing),
        odd(node, min() AS d) AS (
            SELECT e.dst, even.d + e.w + nothing FROM even JOIN few e ON node = src CROSS JOIN one)
        SELECT even.node, even.d, odd.d FROM even LEFT JOIN odd ON even.node = odd.node"""
    # By lengths of walks from 1 over 1-2 (4), 2-3 (5), 3-1 (1), 3-4 (1), 1-4 (20).
    assert_same_rows(run(text), [(1, 0, 10), (2, 14, 4), (3, 9, 19), (4, 20, 10)])


def test_a_join_of_two_recursions_and_one_over_the_other(run: Callable[[str], Rows]) -> None:
    text = """WITH RECURSIVE
        near(node, min() AS d) AS (SELECT 1, 0 UNION SELECT dst, d + w FROM near JOIN few ON node = src),
        far(node, max() AS m) AS (SELECT node, d FROM near UNION SELECT dst, m FROM far JOIN few ON node = src)
        SELECT * FROM near JOIN far USING (node)"""
    assert_same_rows(run(text), [(1, 0, 9), (2, 4, 9), (3, 9, 9), (4, 10, 10)])


def test_a_step_that_gives_wider_types_widens_the_relation(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    text = """WITH RECURSIVE t(n, max() AS x) AS (SELECT 1, 2 UNION SELECT n + 1L, x + 0.5D FROM t WHERE n < 4)
        SELECT * FROM t"""
    assert spark.sql(text).schema.simpleString() == "struct<n:bigint,x:double>"
    assert_same_rows(run(text), [(1, 2.0), (2, 2.5), (3, 3.0), (4, 3.5)])


def test_strings_and_nulls_are_keys_and_a_set_holds_each_row_once(run: Callable[[str], Rows]) -> None:
    text = """WITH RECURSIVE t(a, b) AS (
        VALUES ('x', NULL), ('x', NULL), ('y', 1) UNION SELECT b.a, t.b FROM t JOIN VALUES ('x'), ('y') b(a) ON true)
        SELECT * FROM t"""
    assert_same_rows(run(text), [("x", None), ("x", 1), ("y", None), ("y", 1)])


def test_union_all_between_branches_means_the_same_under_an_aggregate(run: Callable[[str], Rows]) -> None:
    """Contributions are added up row by row, whichever word stands between the branches."""
    text = """WITH RECURSIVE t(k, sum() AS n) AS (SELECT 1, 2 {0} SELECT 1, 2 {0} SELECT k + 1, n FROM t WHERE k < 3)
        SELECT * FROM t"""
    for word in ("UNION", "UNION ALL", "UNION DISTINCT"):
        assert_same_rows(run(text.format(word)), [(1, 4), (2, 4), (3, 4)])


def test_what_ansi_says_holds_inside_the_loop(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    text = """WITH RECURSIVE t(n, max() AS x) AS (SELECT 1, 2147483000 UNION SELECT n + 1, x + 500 FROM t WHERE n < 4)
        SELECT max(x) FROM t"""
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        run(text)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    # What wraps is not monotone: the proof rests on overflow being an error here, too.
    with pytest.raises(Exception, match=r"PARALAGG_ASSUMPTION_VIOLATED.*no value overflows its type"):
        run(text)
    assert run(text.replace("2147483000", "100")) == [(1600,)]
