"""Which assemblies contain which parts, kept in a Delta table that follows changes of the bill of materials?"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BILL = [("bike", "wheel"), ("wheel", "rim"), ("wheel", "spoke"), ("bike", "frame")]
CHANGE = [("rim", "valve"), ("frame", "bolt")]
ROWS = [
    *[("bike", part) for part in ("bolt", "frame", "rim", "spoke", "valve", "wheel")],
    *[("wheel", part) for part in ("rim", "spoke", "valve")],
    ("frame", "bolt"),
    ("rim", "valve"),
]


def answer(spark: SparkSession) -> DataFrame:
    """Return assembly and part after two refreshes: the second one reads the new rows only."""
    folder = Path(tempfile.mkdtemp(prefix="bill-of-materials-"))
    bill, contains = str(folder / "bill"), str(folder / "contains")
    rows = spark.createDataFrame(BILL, "assembly string, part string")
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(bill)
    view = ra.delta.RecursiveTable(
        spark,
        contains,
        keys=["assembly", "part"],
        sources={"bill": bill},
        base=lambda t: t["bill"],
        step=lambda c, t: c.join(t["bill"], c.part == t["bill"].assembly).select(c.assembly, t["bill"].part),
    )
    view.refresh()
    spark.createDataFrame(CHANGE, "assembly string, part string").write.format("delta").mode("append").save(bill)
    view.refresh()
    return spark.read.format("delta").load(contains)
