"""When can one be at each stop, if every change takes five minutes?"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRIPS = [
    ("A", "B", "08:00", "08:20"), ("B", "C", "08:22", "08:30"), ("B", "C", "08:25", "08:45"),
    ("A", "C", "08:10", "09:00"), ("C", "D", "08:50", "09:15"), ("C", "D", "08:35", "08:55"),
    ("D", "A", "09:30", "10:00"),
]  # fmt: skip
ROWS = [
    ("A", datetime(2026, 1, 5, 7, 55), ["A"]),
    ("B", datetime(2026, 1, 5, 8, 20), ["A", "B"]),
    ("C", datetime(2026, 1, 5, 8, 45), ["A", "B", "C"]),
    ("D", datetime(2026, 1, 5, 9, 15), ["A", "B", "C", "D"]),
]


def answer(spark: SparkSession) -> DataFrame:
    """Return stop, earliest arrival and the stops on the way."""
    trips = spark.createDataFrame(TRIPS, "origin string, stop string, leaves string, arrives string").select(
        "origin",
        "stop",
        # The change is part of the timetable: the loop only compares.
        F.expr("to_timestamp('2026-01-05 ' || leaves) - INTERVAL 5 MINUTES").alias("be_there"),
        F.expr("to_timestamp('2026-01-05 ' || arrives)").alias("at"),
    )
    return spark.sql("SELECT 'A' AS stop, TIMESTAMP'2026-01-05 07:55:00' AS at").recursive_agg(
        "stop",
        {"at": "min", "stops": ra.path("at")},
        step=lambda r: r.join(trips, (r.stop == trips.origin) & (r.at <= trips.be_there)).select(trips.stop, trips.at),
    )
