"""``ra.explain`` of the Spark engine: stages, parts of its own, the picture, lower strata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rows import frame

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def found(spark: SparkSession) -> dict[str, DataFrame]:
    """Distances, and those above 1 in a stratum of their own."""
    edges = frame(spark, "src bigint, dst bigint, weight double", [(1, 2, 1.0), (2, 3, 2.0)])
    relations = {
        "dist": ra.relation(frame(spark, "node bigint, dist double", [(1, 0.0)]), keys="node", aggs={"dist": "min"}),
        "far": ra.relation(frame(spark, "node bigint, d double", [(9, 0.0)]), keys="node", aggs={"d": "max"}),
    }

    def step(dist: DataFrame, far: DataFrame) -> dict[str, DataFrame]:  # noqa: ARG001 - asked for by name
        along = dist.join(edges, dist.node == edges.src).where("weight < 5")
        return {
            "dist": along.select(edges.dst.alias("node"), (dist.dist + edges.weight).alias("dist")),
            "far": dist.where("dist > 1").select("node", dist.dist.alias("d")),
        }

    return ra.recursive(relations, step, backend="spark")


def test_every_stage_that_changed_something_is_shown_with_its_reasons(found: dict[str, DataFrame]) -> None:
    text = ra.explain(found["far"])
    parts = ["Program", "Stages", "  stratify", "  simplify", "  verify", "  binarize", "Plan", "Executor: spark"]
    assert [line for line in text.splitlines() if line in parts] == parts
    assert "because dist: lattice" in text
    assert "stratum 2: lattice" in text


def test_a_lower_stratum_is_explained_without_those_above(found: dict[str, DataFrame]) -> None:
    assert "stratum 2: lattice" not in ra.explain(found["dist"], "plan")
    assert "rel_far" not in ra.explain(found["dist"], "mermaid")


def test_one_part_alone(found: dict[str, DataFrame]) -> None:
    assert ra.explain(found["far"], "program").startswith("relation dist(node, min dist)")
    assert ra.explain(found["far"], "binarize").startswith("binarize\n  dist(")
    assert ra.explain(found["far"], "check_types") == "check_types does not change this program."
    assert ra.explain(found["far"], "mermaid").startswith("flowchart LR\n")
    with pytest.raises(ra.UsageError, match="did you mean 'binarize'"):
        ra.explain(found["far"], "binarise")


def test_inputs_have_the_names_of_their_tables_views_and_aliases(spark: SparkSession) -> None:
    frame(spark, "src bigint, dst bigint", [(1, 2)]).createOrReplaceTempView("roads")
    base, closed = frame(spark, "node bigint", [(1,)]), frame(spark, "node bigint", [(3,)]).alias("closed")
    roads = spark.table("roads")

    def step(d: DataFrame) -> DataFrame:
        return d.join(roads, d.node == roads.src).select(roads.dst.alias("node")).join(closed, "node", "left_anti")

    shown = ra.explain(base.recursive_agg("node", step=step, backend="spark"), "program")
    assert ":= roads\n" in shown
    assert ":= closed\n" in shown


def test_the_picture_of_what_has_no_plan(spark: SparkSession) -> None:
    base = frame(spark, "node bigint", [(1,)])
    assert "one DataFrame for each round" in ra.explain(
        base.recursive_agg("node", step=lambda d: d, backend="dataframe"), "mermaid"
    )
    assert ra.explain(base, "mermaid").startswith("%% There is no recursive aggregate")
