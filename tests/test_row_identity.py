"""Rows that Spark calls equal, and expressions tell apart, are different rows of a source: by type of the column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from spark_versions import SPARK

import pyspark_paralagg as ra
from pyspark_paralagg.lowering.identity import has_identity, identity, is_own_identity
from pyspark_paralagg.lowering.joins import differing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.rotates(runs=3)

PLAIN = {
    "double": ("double", "0.0D", "-0.0D", "string(x)"),
    "float": ("float", "0.0F", "-0.0F", "string(x)"),
    "array": ("array<double>", "array(1D, 0.0D)", "array(1D, -0.0D)", "string(x[1])"),
    "array after NaN": ("array<float>", "array('NaN', '0.0')", "array('NaN', '-0.0')", "string(x[1])"),
    "array of arrays": ("array<array<double>>", "array(array(0.0D))", "array(array(-0.0D))", "string(x[0][0])"),
    "structure": ("struct<a:int,b:double>", "struct(1, 0.0D)", "struct(1, -0.0D)", "string(x.b)"),
    "name with a dot": ("struct<`a.b`:double>", "struct(0.0D)", "struct(-0.0D)", "string(x.`a.b`)"),
    "array of structures": ("array<struct<a:double>>", "array(struct(0.0D))", "array(struct(-0.0D))", "string(x[0].a)"),
    "structure that is null": ("struct<a:double>", "NULL", "struct(NULL)", "string(x IS NULL)"),
}
COLLATED = {
    "lower case": ("string collate UTF8_LCASE", "'a'", "'A'", "hex(x)"),
    "trailing spaces": ("string collate UTF8_BINARY_RTRIM", "'a'", "'a '", "hex(x)"),
    "lower case and spaces": ("string collate UTF8_LCASE_RTRIM", "'a'", "'A '", "hex(x)"),
    "locale": ("string collate UNICODE_CI", "'a'", "'A'", "hex(x)"),
    "array of strings": ("array<string collate UTF8_LCASE>", "array('a', 'b')", "array('a', 'B')", "hex(x[1])"),
    "structure of strings": ("struct<a:string collate UTF8_LCASE>", "struct('a')", "struct('A')", "hex(x.a)"),
}
CASES = {**PLAIN, **(COLLATED if SPARK >= (4, 0) else {})}


def table(spark: SparkSession, case: str, *values: str) -> DataFrame:
    """Return rows with the column ``x`` of the case's type; not literals, of which Spark calls two arrays the same."""
    kind = CASES[case][0]
    rows = ", ".join(f"(CAST({value} AS {kind}))" for value in values)
    return spark.sql(f"SELECT x FROM VALUES {rows} AS e(x)")  # noqa: S608 - a constant of this file


@pytest.mark.parametrize("case", CASES)
def test_rows_are_compared_by_identity(spark: SparkSession, case: str) -> None:
    _, old, new, _ = CASES[case]
    rows = table(spark, case, old, new, "NULL")
    others = table(spark, case, old, "NULL")
    assert values(keys(differing(rows, others, ["x"]), case)) == values(keys(table(spark, case, new), case))
    kind = rows.schema["x"].dataType
    assert (has_identity(kind), is_own_identity(kind)) == (True, False)
    assert rows.select(identity(rows.x, kind)).distinct().count() == (2 if old == "NULL" else 3)


@pytest.mark.parametrize("case", CASES)
def test_an_update_to_an_equal_value_is_maintained(spark: SparkSession, case: str) -> None:
    _, old, new, _ = CASES[case]
    before, after = table(spark, case, old, old), table(spark, case, old, new)
    found = maintained(keys(before, case).distinct(), case, before, after)
    assert values(found.rows) == values(keys(after, case))
    assert (found.kind, values(found.upserts)) == ("incremental", values(keys(table(spark, case, new), case)))


def test_a_value_that_an_update_takes_away_leaves(spark: SparkSession) -> None:
    before, after = table(spark, "double", "0.0D"), table(spark, "double", "-0.0D")
    found = maintained(keys(before, "double").distinct(), "double", before, after)
    assert (values(found.rows), values(found.removed)) == (["-0.0"], ["0.0"])


def test_an_inserted_row_does_not_hide_an_equal_one_on_the_right_side_of_an_anti_join(spark: SparkSession) -> None:
    """Only the row that was there before has rejected the key."""
    before, after = table(spark, "double", "0.0D"), table(spark, "double", "0.0D", "-0.0D")
    found = ra.maintain(
        spark.sql("SELECT '-0.0' AS k"),
        keys="k",
        sources={"b": spark.sql("SELECT explode(array('0.0', '-0.0')) AS k"), "e": after},
        inserted={"e": table(spark, "double", "-0.0D")},
        base=lambda t: t["b"].join(keys(t["e"], "double"), "k", "left_anti"),
        step=lambda d, _: d.where("k IS NULL"),
        mode="trust",
    )
    assert values(keys(before, "double")) == ["0.0"]
    assert (values(found.rows), values(found.removed)) == ([], ["-0.0"])


def test_a_full_run_has_upserts_where_only_the_sign_of_a_zero_changes(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1 AS k, -0.0D AS v")
    found = ra.maintain(
        spark.sql("SELECT 1 AS k, 0.0D AS v"),
        keys="k",
        aggs={"v": "min"},
        sources={"e": rows},
        inserted={"e": rows},
        base=lambda t: t["e"],
        step=lambda d, _: d.where("k IS NULL"),
        mode="iterate",
        backend="dataframe",
    )
    assert found.kind == "full"
    assert [str(row.v) for row in found.upserts.collect()] == [str(row.v) for row in found.rows.collect()] == ["-0.0"]


@pytest.mark.parametrize("kind", ["map<int,int>", "array<map<int,int>>", "interval"])
def test_types_without_an_order_are_computed_again(spark: SparkSession, kind: str) -> None:
    gone = spark.sql(f"SELECT 2 AS k, CAST(NULL AS {kind}) AS x")
    found = ra.maintain(
        spark.sql("SELECT explode(array(1, 2)) AS k"),
        keys="k",
        sources={"e": spark.sql(f"SELECT 1 AS k, CAST(NULL AS {kind}) AS x")},
        deleted={"e": gone},
        base=lambda t: t["e"].select("k"),
        step=lambda d, _: d.where("k IS NULL"),
    )
    assert [row.k for row in found.rows.collect()] == [1]
    reason = "rows of e were deleted, and its column x has a type that cannot be compared"
    assert (found.kind, found.reason) == ("full", reason)


def test_integers_and_strings_cost_no_more(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1 AS a, 'x' AS b, array(1.5BD) AS c, named_struct('d', DATE'2000-01-01') AS d")
    for field in rows.schema.fields:
        column = rows[field.name]
        assert identity(column, field.dataType) is column


def maintained(old: DataFrame, case: str, before: DataFrame, after: DataFrame) -> ra.Maintained:
    """Continue the set of texts of ``x``; the change has all rows of both sides."""
    return ra.maintain(
        old,
        keys="k",
        sources={"e": after},
        inserted={"e": after},
        deleted={"e": before},
        base=lambda t: keys(t["e"], case),
        step=lambda d, _: d.where("k IS NULL"),
    )


def keys(rows: DataFrame, case: str) -> DataFrame:
    return rows.selectExpr(f"CAST({CASES[case][3]} AS string) AS k")


def values(rows: DataFrame) -> list[str]:
    return sorted({row.k for row in rows.collect()})
