"""What does each manager's organisation cost, and who stands between each person and the top?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAFF = [("ada", None, 300), ("bob", "ada", 200), ("cas", "ada", 210), ("dan", "bob", 100), ("eve", "dan", 50)]
ROWS = [
    ("ada", 860, ["ada"]),
    ("bob", 350, ["ada", "bob"]),
    ("cas", 210, ["ada", "cas"]),
    ("dan", 150, ["ada", "bob", "dan"]),
    ("eve", 50, ["ada", "bob", "dan", "eve"]),
]


def answer(spark: SparkSession) -> DataFrame:
    """Return person, cost of the person and all reports, and the chain of managers from the top."""
    staff = spark.createDataFrame(STAFF, "person string, manager string, salary long")
    cost = staff.selectExpr("person", "salary AS cost").recursive_agg(
        "person",
        {"cost": "sum"},
        step=lambda c: (
            c.join(staff, "person").where("manager IS NOT NULL").select(F.col("manager").alias("person"), "cost")
        ),
    )
    chain = (
        staff.where("manager IS NULL")
        .select("person")
        .recursive_agg(
            "person",
            {"chain": ra.path()},
            step=lambda c: c.join(staff, c.person == staff.manager).select(staff.person),
        )
    )
    return cost.join(chain, "person")
