"""Test inputs that aggregate by keys: the gang exchanges the halves of the aggregate itself, and gives Spark's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import assert_same_rows, rows_of
from spark_versions import RUN_ERRORS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

NUMBERS = """
    SELECT id, CAST(id % 97 AS int) AS i, IF(id % 5 = 0, NULL, CONCAT('k', id % 31)) AS s,
           CASE id % 4 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D ELSE id / 8 END AS d,
           CAST(id AS decimal(12, 2)) / 4 AS m, DATE'2024-01-01' + CAST(id % 9 AS int) AS day
    FROM range(20000)
"""
AGGREGATES = {
    "count": "SELECT s AS k, count(*) AS v FROM numbers GROUP BY s",
    "two keys": "SELECT i * 10 + day(day) AS k, max(id) AS v FROM numbers GROUP BY i, day",
    "doubles": "SELECT d AS k, count(id) AS v FROM numbers GROUP BY d",
    "decimals": "SELECT i AS k, CAST(sum(m) AS decimal(18, 6)) AS v FROM numbers GROUP BY i",
    "average": "SELECT i AS k, avg(id) AS v FROM numbers GROUP BY i HAVING count(*) > 206",
    "texts": "SELECT day AS k, max(s) AS v FROM numbers GROUP BY day",
    "projected": "SELECT k + 1 AS k, v / 2 AS v FROM (SELECT i AS k, min(id) AS v FROM numbers GROUP BY i) WHERE v > 3",
    "over a join": """
        SELECT /*+ MERGE(b) */ a.id % 7 AS k, count(*) AS v
        FROM range(100) a JOIN range(100) b ON a.id = b.id * 2 GROUP BY a.id % 7
    """,
    "no rows": "SELECT i AS k, sum(id) AS v FROM numbers WHERE id < 0 GROUP BY i",
}
OTHERS = {
    "distinct": "SELECT i AS k, count(DISTINCT s) AS v FROM numbers GROUP BY i",
    "may be too large": "SELECT a.i AS k, count(*) AS v FROM numbers a JOIN numbers b ON a.id = b.id * 2 GROUP BY a.i",
    "no keys": "SELECT 1 AS k, count(*) AS v FROM numbers",
    "no rows to exchange": "SELECT i AS k, id AS v FROM numbers WHERE id < 50",
}


def highest(rows: DataFrame) -> DataFrame:
    """Return the greatest value of each key; the step adds nothing."""
    return rows.recursive_agg("k", {"v": "max"}, step=lambda r: r.where("k IS NULL AND k IS NOT NULL"), backend="spark")


def assert_same(found: DataFrame, expected: DataFrame) -> None:
    assert_same_rows(rows_of(found), rows_of(expected))


@pytest.fixture
def numbers(spark: SparkSession) -> None:
    spark.sql(NUMBERS).createOrReplaceTempView("numbers")


@pytest.mark.rotates(runs=3)
@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize("aqe", ["true", "false"])
@pytest.mark.parametrize("tasks", [1, 2, 7])
@pytest.mark.parametrize("name", [*AGGREGATES, *OTHERS])
def test_the_rows_of_the_aggregate(spark: SparkSession, name: str, tasks: int, aqe: str) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    spark.conf.set("spark.sql.adaptive.enabled", aqe)
    rows = spark.sql({**AGGREGATES, **OTHERS}[name])
    found = highest(rows)
    assert ("GangExchange" in found._jdf.queryExecution().executedPlan().toString()) == (name in AGGREGATES)
    assert_same(found, rows.groupBy("k").agg(F.max("v").alias("v")))


@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_pieces_of_a_file_are_aggregated_once(spark: SparkSession, tmp_path: Path, tasks: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    table = pa.table({"n": range(300_000), "k": [n * 7919 % 1000 for n in range(300_000)]})
    pq.write_table(table, tmp_path / "n.parquet", row_group_size=20_000, use_dictionary=False)
    sums = spark.read.parquet(str(tmp_path)).groupBy("k").agg(F.sum("n").alias("v"))
    assert_same(highest(sums), sums)


@pytest.mark.usefixtures("numbers")
def test_rows_beside_their_aggregate(spark: SparkSession) -> None:
    degrees = spark.sql("SELECT i, count(*) AS n FROM numbers GROUP BY i")
    found = (
        spark.sql("SELECT DISTINCT i AS node, 0L AS d FROM numbers WHERE i < 3")
        .recursive_agg(
            "node",
            {"d": "max"},
            step=lambda r: r.join(degrees, r.node == degrees.i).select(
                (r.node + 1).alias("node"), F.greatest(r.d, degrees.n).alias("d")
            ),
            backend="spark",
        )
        .where("node <= 97")
    )
    assert found.count() == 98
    assert found.agg(F.max("d")).first()[0] == 207


@pytest.mark.usefixtures("numbers")
def test_an_error_in_the_aggregate_is_raised_and_the_session_goes_on(spark: SparkSession) -> None:
    broken = spark.sql("SELECT i AS k, max(10 / (id - 19999)) AS v FROM numbers GROUP BY i")
    with pytest.raises(RUN_ERRORS, match="DIVIDE_BY_ZERO"):
        highest(broken).collect()
    rows = spark.sql(AGGREGATES["count"])
    assert_same(highest(rows), rows)


@pytest.mark.usefixtures("numbers")
def test_an_aggregate_over_the_result_of_another_recursion(spark: SparkSession) -> None:
    first = highest(spark.sql(AGGREGATES["decimals"]))
    counts = first.groupBy((F.col("k") % 7).alias("k")).agg(F.count("*").alias("v"))
    assert_same(highest(counts), spark.range(97).groupBy((F.col("id") % 7).alias("k")).agg(F.count("*").alias("v")))
