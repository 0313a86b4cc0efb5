"""Which accounts belong to one person, if they share an address or a telephone number, directly or through others?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ACCOUNTS = [(1, "a@x", "11"), (2, "b@x", "11"), (3, "b@x", "22"), (4, "c@x", "33"), (5, "d@x", "33"), (6, "e@x", None)]
ROWS = [(1, [1, 2, 3]), (4, [4, 5]), (6, [6])]


def answer(spark: SparkSession) -> DataFrame:
    """Return the least account of each person, and all of that person's."""
    accounts = spark.createDataFrame(ACCOUNTS, "account long, mail string, phone string")
    marks = accounts.selectExpr("account", "explode(array(mail, phone)) AS mark").where("mark IS NOT NULL")
    pairs = marks.join(marks.withColumnRenamed("account", "other"), "mark").select("account", "other").distinct()
    persons = accounts.selectExpr("account", "account AS person").recursive_agg(
        "account",
        {"person": "min"},
        step=lambda p: p.join(pairs, "account").selectExpr("other AS account", "person"),
    )
    return persons.groupBy("person").agg(F.sort_array(F.collect_list("account")).alias("accounts"))
