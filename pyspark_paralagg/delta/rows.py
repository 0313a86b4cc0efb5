"""Rows that a refresh reads several times, computed once and held until it has done with them.

Few rows come to the driver, so that Spark knows how few they are: what is joined with them is scanned, not sorted and
shuffled, and MERGE looks for them in one pass. Many stay in the executors, as a local checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
            return {row[0]: row[1] for row in self.df.groupBy(column).count().collect()}
        return {found["values"]: found["counts"] for found in self.table[column].value_counts().to_pylist()}

    def free(self) -> None:
        """Drops the rows."""
        if self.checkpoint is not None:
            blocks = self.checkpoint._jdf.queryExecution().analyzed().rdd()  # noqa: SLF001 - no public way to it
            blocks.unpersist(False)  # noqa: FBT003 - py4j knows no names of parameters


def keep(df: DataFrame) -> Kept:
    """The rows of ``df``; this runs it."""
    checkpoint = df.localCheckpoint()
    table = checkpoint.limit(FEW + 1).toArrow()
    if table.num_rows > FEW:
        return Kept(checkpoint, checkpoint.count(), None, checkpoint)
    Kept(checkpoint, table.num_rows, table, checkpoint).free()
    return Kept(df.sparkSession.createDataFrame(table, schema=df.schema), table.num_rows, table, None)
