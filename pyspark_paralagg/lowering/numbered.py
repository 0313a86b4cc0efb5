"""Number the rows of a DataFrame, in one task: a number depends on all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def numbered(rows: DataFrame) -> DataFrame:
    """Return the rows with the number of each, from 0 on, in the place of its last column."""
    from pyspark.sql import Window  # noqa: PLC0415 - pyspark is optional
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - likewise

    *keys, number = rows.columns
    order = Window.orderBy(*(quoted(key) for key in keys)) if keys else Window.orderBy(F.lit(0))
    return rows.withColumn(number, F.row_number().over(order).cast("bigint") - 1)
