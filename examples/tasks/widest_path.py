"""What is the heaviest truck that gets from the port to each town, and on which route?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROADS = [("port", "mill", 40), ("mill", "farm", 12), ("port", "hill", 20), ("hill", "farm", 18), ("farm", "lake", 30)]
ROWS = [
    ("farm", 18, ["port", "hill", "farm"]),
    ("hill", 20, ["port", "hill"]),
    ("lake", 18, ["port", "hill", "farm", "lake"]),
    ("mill", 40, ["port", "mill"]),
    ("port", 100, ["port"]),
]


def answer(spark: SparkSession) -> DataFrame:
    """Return town, the greatest weight that all bridges on some route carry, and that route."""
    roads = spark.createDataFrame(ROADS, "origin string, town string, tons long")
    return spark.sql("SELECT 'port' AS town, 100 AS tons").recursive_agg(
        "town",
        {"tons": "max", "route": ra.path("tons")},
        step=lambda r: r.join(roads, r.town == roads.origin).select(
            roads.town, F.least(r.tons, roads.tons).alias("tons")
        ),
    )
