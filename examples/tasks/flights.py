"""What is the cheapest way from Lisbon to each airport with at most three flights, and over which airports?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FLIGHTS = [
    ("LIS", "MAD", 40), ("MAD", "FRA", 60), ("FRA", "NRT", 500), ("LIS", "FRA", 150), ("LIS", "LHR", 90),
    ("LHR", "NRT", 480), ("NRT", "SYD", 300), ("MAD", "LHR", 30), ("SYD", "AKL", 100),
]  # fmt: skip
ROWS = [
    ("FRA", 100, ["LIS", "MAD", "FRA"]),
    ("LHR", 70, ["LIS", "MAD", "LHR"]),
    ("LIS", 0, ["LIS"]),
    ("MAD", 40, ["LIS", "MAD"]),
    ("NRT", 550, ["LIS", "MAD", "LHR", "NRT"]),
    ("SYD", 870, ["LIS", "LHR", "NRT", "SYD"]),
]


def answer(spark: SparkSession) -> DataFrame:
    """Return airport, price and route: the number of flights is a key, so the cheapest way of each length is kept."""
    flights = spark.createDataFrame(FLIGHTS, "origin string, airport string, fare long")
    ways = spark.sql("SELECT 'LIS' AS airport, 0 AS flights, 0 AS price").recursive_agg(
        ["airport", "flights"],
        {"price": "min", "route": ra.path("price")},
        step=lambda w: (
            w.where("flights < 3")
            .join(flights, w.airport == flights.origin)
            .select(flights.airport, w.flights + 1, w.price + flights.fare)
            .toDF("airport", "flights", "price")
        ),
    )
    best = ways.groupBy("airport").agg(F.min(F.struct("price", "flights", "route")).alias("best"))
    return best.select("airport", "best.price", "best.route.airport")
