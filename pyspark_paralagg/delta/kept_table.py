"""A table that only refreshes write: the target of a recursive table, or a companion of it."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark_paralagg.delta.commit import Writer, create_empty
from pyspark_paralagg.delta.record import APPLICATION, last_refresh
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from pyspark_paralagg.delta.record import LastRefresh, Record
    from pyspark_paralagg.delta.tables import Commit, Table


class KeptTable:
    """A table of these ``columns`` (name to type), as it was when the refresh began.

    ``companion_of`` is its relation if it is not the target. Raises ``UsageError`` if it has other columns, or rows
    that no refresh wrote.
    """

    def __init__(self, table: Table, columns: Mapping[str, str], companion_of: str | None = None) -> None:
        self.table = table
        self.columns = columns
        self._kind = "target" if companion_of is None else f"companion of {companion_of}"
        self.snapshot = table.snapshot()
        self._check()

    @property
    def is_maintained(self) -> bool:
        """Return whether a refresh has written the table before."""
        return self.snapshot is not None and APPLICATION in self.snapshot.transactions

    @cached_property
    def last(self) -> LastRefresh | None:
        """Return the last refresh of the table; None if its log has none."""
        return last_refresh(self.table, self.version) if self.is_maintained else None

    @property
    def version(self) -> int:
        """Return the table's version; -1 if there is no table."""
        return -1 if self.snapshot is None else self.snapshot.version

    def reload(self) -> None:
        """Take the table as it is now."""
        self.snapshot = self.table.snapshot()

    def read(self) -> DataFrame:
        """Return its rows."""
        return self.table.read(self.version).select(*map(quoted, self.columns))

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Within it, Delta loads the list of the table's files in another thread; MERGE would have to wait for it."""
        from pyspark import InheritableThread  # noqa: PLC0415 - pyspark is optional

        def load() -> None:
            with suppress(Exception):  # MERGE meets the same problem, and raises it
                self.read().inputFiles()

        thread = InheritableThread(target=load)
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def writer(self, record: Record) -> Writer:
        """Return the writer of a refresh with this ``record``."""
        number = 0 if self.snapshot is None else self.snapshot.transactions.get(APPLICATION, -1) + 1
        return Writer(self.table, number, replace(record, read=self.version))

    def write_all(self, rows: DataFrame, record: Record) -> Commit:
        """Replace all rows; create the table if it is missing."""
        if self.snapshot is None and not self.table.is_path:
            create_empty(self.table, rows)
            self.reload()
        writer = self.writer(record)
        return writer.create(rows) if self.snapshot is None else writer.overwrite(rows)

    def _check(self) -> None:
        snapshot = self.snapshot
        if snapshot is None:
            if self.table.exists_as_something_else():
                raise self._bad_target("is not a Delta table", None)
            return
        if snapshot.columns != self.columns:
            expected = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
            raise UsageError(
                "PARALAGG_DELTA_SCHEMA",
                f"the {self._kind} has the columns {', '.join(f'{n} {t}' for n, t in snapshot.columns.items())}",
                value=snapshot.columns,
                place=f"{self._kind} {self.table.place}",
                hint=f"use another target, or drop this table; the relation has {expected}",
            )
        if not self.is_maintained and not self.table.read(snapshot.version).isEmpty():
            raise self._bad_target("has rows that no refresh wrote", snapshot.version)

    def _bad_target(self, problem: str, value: object) -> UsageError:
        return UsageError(
            "PARALAGG_DELTA_TARGET",
            f"the {self._kind} {problem}, and a refresh would overwrite it",
            value=value,
            place=f"{self._kind} {self.table.place}",
            hint="use another target, or drop or empty this table if its rows are not needed",
        )
