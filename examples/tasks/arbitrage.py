"""Does a chain of at most four exchanges turn 1 euro into more, in exact decimals?"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RATES = [
    ("EUR", "USD", "1.1000"), ("USD", "GBP", "0.8000"), ("GBP", "EUR", "1.1500"), ("USD", "EUR", "0.9000"),
    ("EUR", "GBP", "0.8600"), ("GBP", "USD", "1.2400"),
]  # fmt: skip
ROWS = [
    (2, Decimal("0.9900"), ["EUR", "USD", "EUR"]),
    (3, Decimal("1.0120"), ["EUR", "USD", "GBP", "EUR"]),
    (4, Decimal("0.9821"), ["EUR", "USD", "GBP", "USD", "EUR"]),
]


def answer(spark: SparkSession) -> DataFrame:
    """Return number of exchanges, the most euros after them, and the currencies on the way."""
    rates = spark.createDataFrame(RATES, "sold string, currency string, rate string").selectExpr(
        "sold", "currency", "CAST(rate AS DECIMAL(8, 4)) AS rate"
    )
    base = spark.sql("SELECT 'EUR' AS currency, 0 AS trades, CAST(1 AS DECIMAL(9, 4)) AS amount")
    ways = base.recursive_agg(
        ["currency", "trades"],
        {"amount": "max", "route": ra.path("amount")},
        # A product of 9 and 8 digits has 18, which a machine word holds; it is rounded to the amount's type.
        step=lambda r: (
            r.where("trades < 4")
            .join(rates, r.currency == rates.sold)
            .select(rates.currency, r.trades + 1, (r.amount * rates.rate).cast("decimal(9, 4)"))
            .toDF("currency", "trades", "amount")
        ),
        assume="rate >= 0",
    )
    return ways.where("currency = 'EUR' AND trades > 0").select("trades", "amount", "route.currency")
