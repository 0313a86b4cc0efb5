"""Write the rows and the record of a refresh in one commit of the target.

This is the last step, after ``decide`` and the fixpoint. Each write carries the number of the refresh as Delta's
transaction version. Two concurrent refreshes have the same number. Delta rejects a write that began before the other's
commit, and silently skips one that began after it. A write has therefore succeeded only if its record is in the log.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_paralagg.delta.record import APPLICATION, Record
from pyspark_paralagg.delta.tables import find_table
from pyspark_paralagg.errors import ConflictError
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.session.condition import condition_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.delta.tables import Commit, Table

_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_TRANSACTION = "spark.databricks.delta.write.txn"
_MATERIALIZE = "spark.databricks.delta.merge.materializeSource"
_MOST_BYTES, _MOST_CHANGES = 64 << 20, 1_000_000
_BYTES_OF_A_TASK, _CHANGES_OF_A_TASK = 2 << 20, 100_000
_CONFLICTS = (
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "MetadataChangedException",
    "ProtocolChangedException",
)
_EXISTS = ("DELTA_PATH_EXISTS", "DELTA_TABLE_ALREADY_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS")


class Writer:
    """The writer of one refresh: the ``number``-th of the target, with its ``record``."""

    def __init__(self, target: Table, number: int, record: Record) -> None:
        self._target = target
        self.record = record
        self._options = {"userMetadata": record.to_json(), "txnAppId": APPLICATION, "txnVersion": str(number)}

    def create(self, rows: DataFrame) -> Commit:
        """Create the table with ``rows``."""
        with self._convert_conflicts():
            rows.write.format("delta").mode("errorifexists").options(**self._options).save(self._target.place)
        return self._find_commit()

    def overwrite(self, rows: DataFrame) -> Commit:
        """Replace all rows."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

        with self._convert_conflicts():
            if self._target.is_path:
                # Static mode whatever the session's conf: partitions without new rows must be deleted too.
                writer = rows.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "static")
                writer.options(**self._options).save(self._target.place)
            else:
                # saveAsTable would replace the table and lose the properties that its owner has set.
                rows.writeTo(self._target.place).options(**self._options).overwrite(F.lit(col=True))
        return self._find_commit()

    def append(self, rows: DataFrame) -> Commit:
        """Append rows with new keys; without rows, write the record alone."""
        with self._convert_conflicts():
            if self._target.is_path:
                rows.write.format("delta").mode("append").options(**self._options).save(self._target.place)
            else:
                rows.writeTo(self._target.place).options(**self._options).append()
        return self._find_commit()

    def merge(  # noqa: PLR0913 - all that a MERGE says
        self,
        rows: DataFrame,
        keys: Sequence[str],
        dependents: Sequence[str],
        *,
        tasks: int | None,
        removed: str | None = None,
        adds: bool = True,
    ) -> Commit:
        """Merge rows with new keys or new values. ``rows`` must be materialized, because Delta reads them twice.

        If the column ``removed`` of a row is true, the row of its keys is deleted. The rows are joined in ``tasks``
        tasks without AQE (``tasks_of_merge``); if it is None, as the session's confs say. If it ``adds`` no keys, MERGE
        joins the changed files without a shuffle of their rows.

        MERGE takes record and number only from the session's conf. It therefore runs in a clone of the user's session,
        whose own confs stay unchanged.
        """
        session = _clone_session(self._target.spark)
        session.conf.set(_METADATA, self._options["userMetadata"])
        session.conf.set(f"{_TRANSACTION}AppId", self._options["txnAppId"])
        session.conf.set(f"{_TRANSACTION}Version", self._options["txnVersion"])
        session.conf.set(_MATERIALIZE, "none")
        if tasks is not None:
            session.conf.set("spark.sql.adaptive.enabled", "false")
            session.conf.set("spark.sql.shuffle.partitions", tasks)
        table = find_table(session, self._target.place, is_path=self._target.is_path)
        condition = " AND ".join(f"t.{quoted(k)} <=> s.{quoted(k)}" for k in keys) or "true"
        merge = table.alias("t").merge(rows.alias("s"), condition)
        if removed is not None:
            merge = merge.whenMatchedDelete(f"s.{quoted(removed)}")
        if dependents:
            merge = merge.whenMatchedUpdate(set={quoted(c): f"s.{quoted(c)}" for c in dependents})
        if adds:
            values = {quoted(c): f"s.{quoted(c)}" for c in (*keys, *dependents)}
            is_new = None if removed is None else f"NOT s.{quoted(removed)}"
            merge = merge.whenNotMatchedInsert(condition=is_new, values=values)
        with self._convert_conflicts():
            merge.execute()
        return self._find_commit()

    def _find_commit(self) -> Commit:
        """Return the commit with this record; raise ``ConflictError`` if Delta has skipped the write."""
        snapshot = self._target.snapshot()
        for commit in self._target.commits(-1 if snapshot is None else snapshot.version):
            if commit.version <= self.record.read:
                break
            record = Record.from_json(commit.user_metadata)
            if record is not None and record.id == self.record.id:
                return commit
        raise self._conflict("another refresh was committed first")

    @contextmanager
    def _convert_conflicts(self) -> Iterator[None]:
        """Convert Delta's conflicts to ``ConflictError``; nothing is written in this case."""
        from delta import exceptions  # noqa: PLC0415 - delta is optional
        from pyspark.errors import PySparkException  # noqa: PLC0415 - pyspark is optional

        try:
            yield
        except PySparkException as problem:
            # Delta's Python exceptions have no common base class, unlike its Scala ones.
            if isinstance(problem, tuple(getattr(exceptions, name) for name in _CONFLICTS)):
                raise self._conflict(type(problem).__name__) from problem
            if condition_of(problem) in _EXISTS:
                raise self._conflict("another writer created it") from problem
            raise

    def _conflict(self, cause: str) -> ConflictError:
        return ConflictError(
            "PARALAGG_DELTA_CONFLICT",
            f"another writer committed to {self._target.place} during the refresh: {cause}",
            value=self._target.place,
            place="refresh",
            hint="call refresh() again: this refresh wrote nothing, and the next one starts from the current rows",
        )


def tasks_of_merge(size: int | None, changed: int) -> int | None:
    """Return how many tasks merge ``changed`` rows into a table of ``size`` bytes; None if AQE has to find it out.

    With AQE each stage of MERGE is a job of its own, which costs a small table more than it saves.
    """
    if size is None or size > _MOST_BYTES or changed > _MOST_CHANGES:
        return None
    return 1 + size // _BYTES_OF_A_TASK + changed // _CHANGES_OF_A_TASK


def create_empty(target: Table, rows: DataFrame) -> None:
    """Create an empty table in the catalog: a commit that creates one with rows would not keep the record."""
    from delta.tables import DeltaTable  # noqa: PLC0415 - delta is optional

    DeltaTable.createIfNotExists(target.spark).tableName(target.place).addColumns(rows.schema).execute()


def _clone_session(spark: SparkSession) -> SparkSession:
    from pyspark import RDD  # noqa: PLC0415 - pyspark is optional

    # A new session replaces RDD.toDF, which would then create the user's DataFrames in it, with the record's confs.
    to_df = RDD.toDF
    try:
        return type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())  # noqa: SLF001 - no public way
    finally:
        RDD.toDF = to_df  # type: ignore[method-assign]
