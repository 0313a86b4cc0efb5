"""Rows and record of a refresh in one commit of the target.

After ``decide`` and the fixpoint. Each write carries the number of the refresh as Delta's transaction version. Of two
refreshes at once, which have the same number, Delta refuses the one that began before the other's commit; one that
begins after it Delta skips without a word, so a write counts only once its record is seen in the log.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_paralagg.delta.record import APPLICATION, Record
from pyspark_paralagg.delta.tables import find_table
from pyspark_paralagg.errors import ConflictError
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.delta.tables import Commit, Table

_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_TRANSACTION = "spark.databricks.delta.write.txn"
_MATERIALIZE = "spark.databricks.delta.merge.materializeSource"
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
    """Writes one refresh, the ``number``-th of the target, with its ``record``."""

    def __init__(self, target: Table, number: int, record: Record) -> None:
        self._target = target
        self._record = record
        self._options = {"userMetadata": record.to_json(), "txnAppId": APPLICATION, "txnVersion": str(number)}

    def create(self, rows: DataFrame) -> Commit:
        """A table that is not there yet."""
        with self._surfaced():
            rows.write.format("delta").mode("errorifexists").options(**self._options).save(self._target.place)
        return self._own()

    def overwrite(self, rows: DataFrame) -> Commit:
        """All rows anew."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

        with self._surfaced():
            if self._target.is_path:
                # Whatever the session says of partitions: those without new rows have to go too.
                writer = rows.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "static")
                writer.options(**self._options).save(self._target.place)
            else:
                # saveAsTable would replace the table, and with it the properties that its owner has set.
                rows.writeTo(self._target.place).options(**self._options).overwrite(F.lit(col=True))
        return self._own()

    def append(self, rows: DataFrame) -> Commit:
        """Rows whose keys are new; without any, the record alone."""
        with self._surfaced():
            if self._target.is_path:
                rows.write.format("delta").mode("append").options(**self._options).save(self._target.place)
            else:
                rows.writeTo(self._target.place).options(**self._options).append()
        return self._own()

    def merge(self, rows: DataFrame, keys: Sequence[str], dependents: Sequence[str]) -> Commit:
        """Rows whose keys are new or have new values. ``rows`` are stored somewhere: Delta reads them twice.

        MERGE takes record and number from the session's conf only, so it runs in a session of its own, with the
        same confs beside these; the user's session keeps its own.
        """
        session = _own_session(self._target.spark)
        session.conf.set(_METADATA, self._options["userMetadata"])
        session.conf.set(f"{_TRANSACTION}AppId", self._options["txnAppId"])
        session.conf.set(f"{_TRANSACTION}Version", self._options["txnVersion"])
        session.conf.set(_MATERIALIZE, "none")
        table = find_table(session, self._target.place, is_path=self._target.is_path)
        same = " AND ".join(f"t.{quoted(k)} <=> s.{quoted(k)}" for k in keys) or "true"
        with self._surfaced():
            (
                table.alias("t")
                .merge(rows.alias("s"), same)
                .whenMatchedUpdate(set={quoted(c): f"s.{quoted(c)}" for c in dependents})
                .whenNotMatchedInsert(values={quoted(c): f"s.{quoted(c)}" for c in (*keys, *dependents)})
                .execute()
            )
        return self._own()

    def _own(self) -> Commit:
        """The commit with our record; ``ConflictError`` where Delta has skipped the write."""
        now = self._target.snapshot()
        for commit in self._target.commits(-1 if now is None else now.version):
            if commit.version <= self._record.read:
                break
            record = Record.from_json(commit.user_metadata)
            if record is not None and record.id == self._record.id:
                return commit
        raise self._conflict("another refresh of it was committed first")

    @contextmanager
    def _surfaced(self) -> Iterator[None]:
        """Delta's conflicts as ``ConflictError``; nothing is written then."""
        from delta import exceptions  # noqa: PLC0415 - delta is optional
        from pyspark.errors import PySparkException  # noqa: PLC0415 - pyspark is optional

        try:
            yield
        except PySparkException as problem:
            # What Delta's Python side raises does not derive from one class, though Delta's own errors do.
            if isinstance(problem, tuple(getattr(exceptions, name) for name in _CONFLICTS)):
                raise self._conflict(type(problem).__name__) from problem
            if problem.getCondition() in _EXISTS:
                raise self._conflict("it has been created in the meantime") from problem
            raise

    def _conflict(self, what: str) -> ConflictError:
        return ConflictError(
            "PARALAGG_DELTA_CONFLICT",
            f"somebody else wrote {self._target.place} at the same time: {what}",
            value=self._target.place,
            place="refresh",
            hint="nothing was written and this is retryable: call refresh() again, it starts from what is there now",
        )


def create_empty(target: Table, like: DataFrame) -> None:
    """A table of the catalog without rows: Delta keeps no record in a commit that creates one from rows."""
    from delta.tables import DeltaTable  # noqa: PLC0415 - delta is optional

    DeltaTable.createIfNotExists(target.spark).tableName(target.place).addColumns(like.schema).execute()


def _own_session(spark: SparkSession) -> SparkSession:
    from pyspark import RDD  # noqa: PLC0415 - pyspark is optional

    # pyspark gives each new session to RDD.toDF: what the user makes so afterwards would be written with our record.
    of_user = RDD.toDF
    try:
        return type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())  # noqa: SLF001 - no public way
    finally:
        RDD.toDF = of_user  # type: ignore[method-assign]
