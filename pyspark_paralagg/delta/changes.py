"""The contents of the sources' change feeds since the last refresh: counts by kind, and rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_paralagg.delta.tables import CHANGE_COLUMNS
from pyspark_paralagg.maintenance.net import net_changes
from pyspark_paralagg.maintenance.rows import materialize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_paralagg.maintenance.rows import MaterializedRows

KIND = CHANGE_COLUMNS[0]
"""The column of a change feed that tells inserts from deletes."""


@dataclass(frozen=True)
class Changes:
    """The contents of the change feeds: counts of changed rows by source and kind, and the rows if they are needed.

    ``net`` are those that were computed from the rows. The reader of the rows calls ``free`` at the end.
    """

    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    rows: dict[str, MaterializedRows] = field(default_factory=dict)
    net: list[MaterializedRows] = field(default_factory=list)

    @property
    def sources(self) -> set[str]:
        """Return the names of the sources that have changed rows."""
        return {name for name, counts in self.counts.items() if counts}

    @property
    def has_deletes(self) -> bool:
        """Return whether a row was deleted or updated."""
        return any(counts.keys() - {"insert"} for counts in self.counts.values())

    def net_rows(self) -> tuple[dict[str, DataFrame], dict[str, DataFrame]]:
        """Return inserted and deleted rows of each source, without the feed's own columns and without what cancels out.

        Duplicates count, for sums and for kept states. The rows are computed once, and freed with these changes.
        """
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

        def evaluated(rows: DataFrame) -> DataFrame:
            self.net.append(materialize(rows, is_cheap=True))
            return self.net[-1].df

        inserted, deleted = {}, {}
        for name, rows in self.rows.items():
            plain = rows.df.drop(*CHANGE_COLUMNS)
            if self.counts[name].keys() == {"insert"}:
                inserted[name] = plain
                continue
            kind = F.col(CHANGE_COLUMNS[0])
            sign = F.when(kind.isin("insert", "update_postimage"), F.lit(1)).otherwise(F.lit(-1))
            df = rows.df if rows.table is None else rows.df.coalesce(1)  # so that grouping needs no shuffle
            inserted[name], deleted[name] = net_changes(df, sign, plain.columns, repeats=True, evaluated=evaluated)
        return inserted, deleted

    def free(self) -> None:
        """Free the rows."""
        for rows in (*self.rows.values(), *self.net):
            rows.free()
