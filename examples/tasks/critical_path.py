"""When can each task of a project end, and which chain of tasks decides that?"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS = [("plan", 5), ("dig", 10), ("walls", 20), ("roof", 8), ("wires", 12), ("party", 1)]
AFTER = [
    ("plan", "dig"),
    ("dig", "walls"),
    ("walls", "roof"),
    ("walls", "wires"),
    ("roof", "party"),
    ("wires", "party"),
]
ROWS = [
    ("dig", date(2026, 3, 16), ["plan", "dig"]),
    ("party", date(2026, 4, 18), ["plan", "dig", "walls", "wires", "party"]),
    ("plan", date(2026, 3, 6), ["plan"]),
    ("roof", date(2026, 4, 13), ["plan", "dig", "walls", "roof"]),
    ("walls", date(2026, 4, 5), ["plan", "dig", "walls"]),
    ("wires", date(2026, 4, 17), ["plan", "dig", "walls", "wires"]),
]


def answer(spark: SparkSession) -> DataFrame:
    """Return task, the day of its end, and the critical chain: the latest end of what comes before decides."""
    tasks = spark.createDataFrame(TASKS, "task string, days int")
    after = spark.createDataFrame(AFTER, "first string, task string").join(tasks, "task")
    begin = tasks.where("task = 'plan'").selectExpr("task", "date_add(DATE'2026-03-01', days) AS ends")
    return begin.recursive_agg(
        "task",
        {"ends": "max", "chain": ra.path("ends")},
        step=lambda r: r.join(after, r.task == after["first"]).select(
            after.task, F.date_add(r.ends, after.days).alias("ends")
        ),
    )
