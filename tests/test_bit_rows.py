"""Test rows of bits in the gang: the rows of the definition for any number of tasks; tuples if a key is null."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bit_cases import TEXTS, BitCase, bit_case, many_values
from rows import arrow_frame
from spark_versions import KNOWS_SIZES

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def relations(spark: SparkSession, case: BitCase) -> dict[str, DataFrame]:
    """Return the relations of a case."""
    frames = {name: arrow_frame(spark, table) for name, table in case.facts.items()}
    found = ra.datalog(spark, case.text, frames, backend="spark")
    return {name: found[name] for name in case.rows}


@pytest.mark.parametrize("tasks", [1, 2, 7])
@pytest.mark.parametrize("name", TEXTS)
def test_the_rows_of_the_definition(spark: SparkSession, name: str, tasks: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    spark.conf.set("spark.sql.adaptive.enabled", tasks != 2)
    case = bit_case(name, tasks, are_strings=tasks == 2)
    for relation, df in relations(spark, case).items():
        assert sorted(tuple(r) for r in df.collect()) == case.rows[relation]
        report = ra.report(df)
        assert report is not None
        assert report.form == "rows of bits" or not KNOWS_SIZES


@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_rows_of_several_blocks(spark: SparkSession, tasks: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    case = many_values(tasks)
    for relation, df in relations(spark, case).items():
        assert sorted(tuple(r) for r in df.collect()) == case.rows[relation]
        report = ra.report(df)
        assert report is not None
        assert report.form == "rows of bits" or not KNOWS_SIZES


def test_a_null_key_is_a_row_of_tuples(spark: SparkSession) -> None:
    case = bit_case("points-to", 0)
    frames = {name: arrow_frame(spark, table) for name, table in case.facts.items()}
    frames["new"] = frames["new"].union(spark.sql("SELECT CAST(NULL AS BIGINT), 5L"))
    found = ra.datalog(spark, case.text, frames, backend="spark")["pt"]
    rows = [tuple(r) for r in found.collect()]
    report = ra.report(found)
    assert report is not None
    assert report.form != "rows of bits"
    assert sorted(r for r in rows if r[0] is not None) == case.rows["pt"]
    assert (None, 5) in rows
