"""Materialize rows that a refresh reads several times, until it frees them.

Few rows go to the driver, so that Spark has their exact number: joins with them are broadcast joins, without a shuffle
or a sort, and MERGE finds their matches in one pass. Many rows stay in the executors, as a local checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.session.attach import drop_checkpoint

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MAX_DRIVER_ROWS = 100_000


@dataclass(frozen=True)
class MaterializedRows:
    """``df`` with ``count`` rows: either few rows, held in ``table``, or many rows, held in ``checkpoint``."""

    df: DataFrame
    count: int
    table: pa.Table | None
    checkpoint: DataFrame | None

    def counts(self, column: str) -> dict[str, int]:
        """Return the number of rows for each value of ``column``."""
        if self.table is None:
            return count_values(self.df, column)
        return {entry["values"]: entry["counts"] for entry in self.table[column].value_counts().to_pylist()}

    def free(self) -> None:
        """Free the rows."""
        if self.checkpoint is not None:
            drop_checkpoint(self.checkpoint)


def materialize(df: DataFrame) -> MaterializedRows:
    """Run ``df`` and return its rows."""
    checkpoint = df.localCheckpoint()
    try:
        if not hasattr(checkpoint, "toArrow"):  # Spark 3.5, which makes no DataFrame of an Arrow table either
            return MaterializedRows(checkpoint, checkpoint.count(), None, checkpoint)
        table = checkpoint.limit(MAX_DRIVER_ROWS + 1).toArrow()
        count = table.num_rows if table.num_rows <= MAX_DRIVER_ROWS else checkpoint.count()
    except BaseException:
        drop_checkpoint(checkpoint)
        raise
    if count > MAX_DRIVER_ROWS:
        return MaterializedRows(checkpoint, count, None, checkpoint)
    drop_checkpoint(checkpoint)
    return MaterializedRows(df.sparkSession.createDataFrame(table, schema=df.schema), count, table, None)


def count_values(df: DataFrame, column: str) -> dict[str, int]:
    """Run ``df`` and return the number of rows for each value of ``column``."""
    return {row[0]: row[1] for row in df.groupBy(column).count().collect()}
