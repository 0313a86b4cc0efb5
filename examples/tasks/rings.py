"""Where does money come back after exactly four transfers, and over which accounts?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRANSFERS = [(1, 2), (2, 3), (3, 4), (4, 1), (2, 5), (5, 6), (6, 7), (7, 2), (7, 8), (8, 9), (3, 1)]
ROWS = [([1, 2, 3, 4, 1],), ([2, 5, 6, 7, 2],)]


def answer(spark: SparkSession) -> DataFrame:
    """Return a ring of four hops of each account that is the least of its ring."""
    transfers = spark.createDataFrame(TRANSFERS, "payer long, account long")
    start = transfers.selectExpr("payer AS first", "payer AS account", "0 AS hops").distinct()
    ways = start.recursive_agg(
        ["first", "account", "hops"],
        {"ring": ra.path()},
        # Only the least account starts a ring, and it comes back in the fourth hop.
        step=lambda w: (
            w.where("hops < 4")
            .join(transfers, w.account == transfers.payer)
            .where((transfers.account > w["first"]) | ((transfers.account == w["first"]) & (w.hops == 3)))  # noqa: PLR2004 - the fourth hop
            .select(w["first"], transfers.account, (w.hops + 1).alias("hops"))
        ),
    )
    return ways.where("hops = 4 AND account = first").select("ring.account")
