"""Materialize rows that a refresh reads several times, until it frees them.

Few rows go to the driver, so that Spark has their exact number: joins with them are broadcast joins, without a shuffle
or a sort, and MERGE finds their matches in one pass. Many rows stay in the executors, as a local checkpoint.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.session.attach import drop_checkpoint, keep_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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

    def counts(self, column: str) -> dict[Any, int]:
        """Return the number of rows for each value of ``column``."""
        if self.table is None:
            return count_values(self.df, column)
        return {entry["values"]: entry["counts"] for entry in self.table[column].value_counts().to_pylist()}

    def free(self) -> None:
        """Free the rows."""
        if self.checkpoint is not None:
            drop_checkpoint(self.checkpoint)


def materialize(df: DataFrame, *, is_cheap: bool = False) -> MaterializedRows:
    """Run ``df`` and return its rows. If it ``is_cheap``, it may run twice, which saves a job if it has few rows."""
    table = _few_rows(df) if is_cheap else None
    if table is not None:
        return _in_driver(df, table)
    checkpoint = df.localCheckpoint()
    try:
        table = None if is_cheap else _few_rows(checkpoint)
        if table is None:
            return MaterializedRows(checkpoint, checkpoint.count(), None, checkpoint)
    except BaseException:
        drop_checkpoint(checkpoint)
        raise
    drop_checkpoint(checkpoint)
    return _in_driver(df, table)


@contextmanager
def one_run(frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """Within it, the relations of one recursion are computed by one run, whichever of them is read first."""
    forget = keep_run(next(iter(frames.values()))) if len(frames) > 1 else None
    try:
        yield
    finally:
        if forget is not None:
            forget()


def materialize_all(
    frames: Mapping[str, DataFrame], of: Mapping[str, DataFrame] | None = None, *, is_cheap: bool = False
) -> dict[str, MaterializedRows]:
    """Run the relations of one recursion, and return their rows; ``frames`` may be queries ``of`` those relations.

    A run of several is cheap to read twice: the second job reads what the first one has left.
    """
    found: dict[str, MaterializedRows] = {}
    try:
        with one_run(frames if of is None else of):
            for name, df in frames.items():
                found[name] = materialize(df, is_cheap=is_cheap or len(frames) > 1)
    except BaseException:
        for rows in found.values():
            rows.free()
        raise
    return found


def _few_rows(df: DataFrame) -> pa.Table | None:
    """Run ``df`` and return its rows; None if they are too many, or on Spark 3.5, which has no Arrow tables."""
    if not hasattr(df, "toArrow"):
        return None
    table = df.limit(MAX_DRIVER_ROWS + 1).toArrow()
    return table if table.num_rows <= MAX_DRIVER_ROWS else None


def _in_driver(df: DataFrame, table: pa.Table) -> MaterializedRows:
    return MaterializedRows(df.sparkSession.createDataFrame(table, schema=df.schema), table.num_rows, table, None)


def count_values(df: DataFrame, column: str) -> dict[Any, int]:
    """Run ``df`` and return the number of rows for each value of ``column``."""
    return {row[0]: row[1] for row in df.groupBy(column).count().collect()}
