"""Rows that a refresh reads several times, computed once and held until it has done with them.

Few rows come to the driver, so that Spark knows how few they are: what is joined with them is scanned, not sorted and
shuffled, and MERGE looks for them in one pass. Many stay in the executors, as a local checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEW = 100_000


@dataclass(frozen=True)
class Kept:
    """``df`` has the rows, ``count`` of them; ``checkpoint`` is where they lie if that is not the driver."""

    df: DataFrame
    count: int
    checkpoint: DataFrame | None = None

    def free(self) -> None:
        """Drops the rows."""
        if self.checkpoint is not None:
            blocks = self.checkpoint._jdf.queryExecution().analyzed().rdd()  # noqa: SLF001 - no public way to it
            blocks.unpersist(False)  # noqa: FBT003 - py4j knows no names of parameters


def keep(df: DataFrame) -> Kept:
    """The rows of ``df``; this runs it."""
    checkpoint = df.localCheckpoint()
    found = Kept(checkpoint, checkpoint.count(), checkpoint)
    if found.count > FEW:
        return found
    table = checkpoint.toArrow()
    found.free()
    return Kept(df.sparkSession.createDataFrame(table, schema=df.schema), found.count)
