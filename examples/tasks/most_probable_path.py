"""What is the most probable way from a word to each later one, and how probable is it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOVES = [
    ("rain", "mud", 0.5),
    ("mud", "fall", 0.5),
    ("rain", "fall", 0.125),
    ("fall", "laugh", 0.75),
    ("laugh", "rain", 1.0),
]
ROWS = [
    ("fall", 0.25, ["rain", "mud", "fall"]),
    ("laugh", 0.1875, ["rain", "mud", "fall", "laugh"]),
    ("mud", 0.5, ["rain", "mud"]),
    ("rain", 1.0, ["rain"]),
]


def answer(spark: SparkSession) -> DataFrame:
    """Return state, probability of the best way, and that way."""
    moves = spark.createDataFrame(MOVES, "before string, state string, p double")
    return spark.sql("SELECT 'rain' AS state, 1D AS probability").recursive_agg(
        "state",
        {"probability": "max", "way": ra.path("probability")},
        step=lambda r: r.join(moves, r.state == moves.before).select(
            moves.state, (r.probability * moves.p).alias("probability")
        ),
        assume=["p >= 0", "p <= 1"],
    )
