"""Who of these customers is the same person? Entity resolution: similar records become pairs, pairs become persons.

    python -m examples.entities [--out demo-output]        (or: make example NAME=entities)

The records are made up with a fixed seed (`examples.people`): 1,000 persons with addresses and dates of birth, each
entered one to five times with the mistakes that people make: typos, days and months swapped, moved, married. So the
truth is known, and what is found can be measured. Spark's own functions do the comparing: blocking by two coarse keys,
then `levenshtein` on what is left.

Look at ``connected``: of three records the first may resemble the second, and the second the third, though the first
and the third share little. Following such chains is the recursion: each record takes the smallest number that reaches
it. This finds more (recall), and one wrong link joins two families (precision). All thresholds are asked at once, since
the threshold is part of the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from examples import charts, stage
from examples.people import make_records

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import Column, DataFrame, SparkSession

COLUMNS = "record bigint, person bigint, name string, street string, town string, born string"
THRESHOLDS = (0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90)
SHOWN = 0.75
PERSONS = 1_000


def similar_pairs(records: DataFrame) -> DataFrame:
    """(a, b, similarity) for a < b that share a block: town and sound of the surname, or the digits of the birthday."""
    sound = F.concat_ws("|", F.soundex(F.substring_index("name", " ", -1)), "town")
    digits = F.array_join(F.array_sort(F.split("born", "")), "")  # the same where day and month were swapped
    keys = F.array(sound, digits)
    left = records.select("*", F.explode(keys).alias("block"))
    right = left.select([F.col(name).alias(f"{name}_b") for name in left.columns])

    def alike(column: str) -> Column:
        one, other = F.lower(column), F.lower(f"{column}_b")
        return 1 - F.levenshtein(one, other) / F.greatest(F.length(one), F.length(other))

    together = left.join(right, (F.col("block") == F.col("block_b")) & (F.col("record") < F.col("record_b")))
    similarity = 0.5 * alike("name") + 0.25 * alike("street") + 0.25 * alike("born")
    return together.select(
        F.col("record").alias("a"), F.col("record_b").alias("b"), similarity.alias("similarity")
    ).distinct()


def connected(records: DataFrame, links: DataFrame) -> DataFrame:
    """(threshold, record, entity): the smallest record that chains of ``links`` (threshold, a, b) lead to."""
    both = links.union(links.select("threshold", F.col("b").alias("a"), F.col("a").alias("b")))
    thresholds = links.select(F.col("threshold").alias("t")).distinct()
    start = (
        records.select("record")
        .crossJoin(thresholds)
        .select(F.col("t").alias("threshold"), "record", F.col("record").alias("entity"))
    )
    return start.recursive_agg(
        keys=["threshold", "record"],
        aggs={"entity": "min"},
        step=lambda known: known.join(both, (known.threshold == both.threshold) & (known.record == both.a)).select(
            known.threshold, both.b.alias("record"), known.entity
        ),
    )


def score(records: DataFrame, links: DataFrame, persons: DataFrame) -> pd.DataFrame:
    """For each threshold: precision and recall of the pairs themselves, and of what they connect; by the truth."""
    pairs = F.expr("count(*) * (count(*) - 1) / 2")
    whose = persons.join(records.select("record", "person"), "record")
    joined = (
        whose.groupBy("threshold", "entity").agg(pairs.alias("n")).groupBy("threshold").agg(F.sum("n").alias("joined"))
    )
    right = whose.groupBy("threshold", "entity", "person").agg(pairs.alias("n"))
    right = right.groupBy("threshold").agg(F.sum("n").alias("right"))
    true = records.groupBy("person").agg(pairs.alias("n")).agg(F.sum("n").alias("true"))

    person = records.select("record", "person")
    one, other = person.toDF("a", "person"), person.toDF("b", "person_b")
    direct = links.join(one, "a").join(other, "b").groupBy("threshold").agg(
        F.count("*").alias("linked"), F.count_if(F.col("person") == F.col("person_b")).alias("linked_right")
    )  # fmt: skip
    counts = direct.join(joined, "threshold").join(right, "threshold").crossJoin(true).orderBy("threshold")
    return counts.select(
        "threshold",
        (F.col("linked_right") / F.col("linked")).alias("pair_precision"),
        (F.col("linked_right") / F.col("true")).alias("pair_recall"),
        (F.col("right") / F.col("joined")).alias("precision"),
        (F.col("right") / F.col("true")).alias("recall"),
    ).toPandas()


def tell(spark: SparkSession, out: Path) -> Path:
    # %% The records. The column `person` is the truth, which nothing below `score` looks at.
    records = spark.createDataFrame(make_records(PERSONS), COLUMNS).cache()
    records.orderBy("record").select("record", "name", "street", "town", "born").show(6, truncate=False)

    # %% Pairs that are similar, for each of the thresholds, and what they connect.
    pairs = similar_pairs(records).cache()
    thresholds = spark.createDataFrame([(threshold,) for threshold in THRESHOLDS], "threshold double")
    links = thresholds.join(pairs, pairs.similarity >= thresholds.threshold).drop("similarity")
    persons = connected(records, links).cache()

    # %% How good is it? Of the pairs that were found, how many are right, and of those that there are, how many found?
    scores = score(records, links, persons)
    print(f"{records.count():,} records of {PERSONS:,} persons, {pairs.count():,} pairs compared\n")
    print_scores(scores)

    # %% The records of one person, by a threshold in between.
    chosen = persons.filter(F.col("threshold") == SHOWN)
    largest = chosen.groupBy("entity").count().orderBy(F.desc("count"), "entity").first()
    print(f"\nThe largest entity at {SHOWN:.2f}:")
    shown = records.join(chosen.filter(F.col("entity") == largest.entity), "record").orderBy("record")
    shown.select("record", "person", "name", "street", "town", "born").show(truncate=False)

    # %% As a picture.
    picture = out / "entities.png"
    charts.draw_scores(picture, scores)
    return picture


def print_scores(scores: pd.DataFrame) -> None:
    """Print a line for each threshold."""
    print(f"  {'':<12}{'pairs alone':>24}{'connected':>24}")
    print(f"  {'similarity':<12}{'precision':>12}{'recall':>12}{'precision':>12}{'recall':>12}\n  {'─' * 60}")
    for threshold, *shares in scores.itertuples(index=False):
        print(f"  ≥ {threshold:<10.2f}" + "".join(f"{share:>12.1%}" for share in shares))


if __name__ == "__main__":
    stage.run(__doc__, tell)
