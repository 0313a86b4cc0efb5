"""Rows that a refresh reads several times, computed once and held until it has done with them.

Few rows come to the driver, so that Spark knows how few they are: what is joined with them is scanned, not sorted and
shuffled, and MERGE looks for them in one pass. Many stay in the executors, as a local checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.session.attach import drop_checkpoint

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

FEW = 100_000


@dataclass(frozen=True)
class Kept:
    """``df`` has the rows, ``count`` of them; few are in ``table`` too, many lie in ``checkpoint``."""

    df: DataFrame
    count: int
    table: pa.Table | None
    checkpoint: DataFrame | None

    def counts(self, column: str) -> dict[str, int]:
        """How many rows have which value of ``column``."""
        if self.table is None:
            return count_values(self.df, column)
        return {found["values"]: found["counts"] for found in self.table[column].value_counts().to_pylist()}

    def free(self) -> None:
        """Drops the rows."""
        if self.checkpoint is not None:
            drop_checkpoint(self.checkpoint)


def keep(df: DataFrame) -> Kept:
    """The rows of ``df``; this runs it."""
    checkpoint = df.localCheckpoint()
    try:
        table = checkpoint.limit(FEW + 1).toArrow()
        count = table.num_rows if table.num_rows <= FEW else checkpoint.count()
    except BaseException:
        drop_checkpoint(checkpoint)
        raise
    if count > FEW:
        return Kept(checkpoint, count, None, checkpoint)
    drop_checkpoint(checkpoint)
    return Kept(df.sparkSession.createDataFrame(table, schema=df.schema), count, table, None)


def count_values(df: DataFrame, column: str) -> dict[str, int]:
    """How many rows have which value of ``column``; this runs ``df``."""
    return {row[0]: row[1] for row in df.groupBy(column).count().collect()}
