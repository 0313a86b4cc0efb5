"""Who may read which folder, if folders inherit, the nearest rule decides, and a deny beats an allow beside it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDERS = [("/", "/hr"), ("/", "/it"), ("/hr", "/hr/pay"), ("/hr/pay", "/hr/pay/2026")]
RULES = [
    ("/", "ann", True),
    ("/hr", "ann", False),
    ("/hr/pay", "ann", True),
    ("/hr", "bob", True),
    ("/hr", "bob", False),
]
ROWS = [
    ("/", "ann"),
    ("/hr/pay", "ann"),
    ("/hr/pay/2026", "ann"),
    ("/it", "ann"),
]


def answer(spark: SparkSession) -> DataFrame:
    """Return folder and user where the nearest rule allows; of several rules of a folder, false is the least."""
    folders = spark.createDataFrame(FOLDERS, "parent string, folder string")
    rules = spark.createDataFrame(RULES, "folder string, user string, allowed boolean")
    nearest = rules.selectExpr("folder", "user", "0 AS distance", "int(allowed) AS allowed").recursive_agg(
        ["folder", "user"],
        {"distance": "min", "allowed": ra.min_by("distance")},
        step=lambda r: r.join(folders, r.folder == folders.parent).select(
            folders.folder, r.user, (r.distance + 1).alias("distance"), r.allowed
        ),
    )
    return nearest.where("allowed = 1").select("folder", "user")
