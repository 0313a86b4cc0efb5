"""Drive refreshes by a stream over the change feeds of the sources: ``RecursiveTable.follow``.

    change feeds of all sources -> one micro-batch for the commits since the last one -> refresh()

The stream only notifies: a batch is not read, because a refresh itself reads the changes since the versions that the
target's last commit has consumed. A batch that runs twice after a restart therefore refreshes once; the second refresh
finds no new version.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.delta.tables import CHANGE_COLUMNS
from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pyspark_paralagg.delta.tables import Snapshot, Table


_STARTS = "paralagg_first_versions.json"
"""The file of the checkpoint folder with the version of each source at which the query's first batch starts.

A restart after the first batch reads that batch's start from the stream's option again, so it has to be the same.
"""


def follow_sources(
    spark: SparkSession,
    sources: Mapping[str, tuple[Table, Snapshot]],
    refresh: Callable[[], object],
    checkpoint: str,
    trigger: Mapping[str, Any],
) -> StreamingQuery:
    """Start a query that calls ``refresh`` at once, and again after commits to ``sources``.

    ``trigger`` has the arguments of ``DataStreamWriter.trigger``. Raises ``UsageError`` ``PARALAGG_DELTA_SOURCE`` if a
    source has no change feed.
    """
    for name, (table, snapshot) in sources.items():
        _check_feed(name, table, snapshot)
    # The newest commit: the first batch runs at once, and reads nothing older.
    starts = _Starts(spark, checkpoint)
    first = starts.versions({name: snapshot.version for name, (_, snapshot) in sources.items()})
    streams = [_stream(spark, table, first[name]) for name, (table, _) in sources.items()]

    def run(_: DataFrame, __: int) -> None:
        refresh()

    changes = reduce(lambda a, b: a.unionAll(b), streams)
    writer = changes.writeStream.option("checkpointLocation", checkpoint).foreachBatch(run)
    writer = writer.trigger(**trigger) if trigger else writer  # Spark checks it
    starts.write(first)
    return writer.start()


def _check_feed(name: str, table: Table, snapshot: Snapshot) -> None:
    if not snapshot.has_change_feed:
        raise UsageError(
            "PARALAGG_DELTA_SOURCE",
            f"the source {name!r} has no change feed, and a stream cannot follow it",
            value=table.place,
            place=f"source {name}",
            hint="ALTER TABLE ... SET TBLPROPERTIES (delta.enableChangeDataFeed = true), or call refresh() yourself",
        )


class _Starts:
    """The file of a checkpoint folder with the first version of each source."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - pyspark has no public way to Hadoop's file systems
        self._file = jvm.org.apache.hadoop.fs.Path(checkpoint, _STARTS)
        self._files = self._file.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001 - likewise

    def versions(self, newest: Mapping[str, int]) -> dict[str, int]:
        """Return the versions in the file, and ``newest`` for sources that it does not have."""
        stored: dict[str, int] = {}
        if self._files.exists(self._file):
            opened = self._files.open(self._file)
            try:
                stored = json.loads(bytes(opened.readAllBytes()))
            finally:
                opened.close()
        return {**newest, **stored}

    def write(self, versions: Mapping[str, int]) -> None:
        """Write the file if there is none."""
        if self._files.exists(self._file):
            return
        created = self._files.create(self._file)
        try:
            created.write(bytearray(json.dumps(dict(versions)).encode()))
        finally:
            created.close()


def _stream(spark: SparkSession, table: Table, first: int) -> DataFrame:
    """Return the stream of a source's changes from the version ``first`` on."""
    reader = spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", str(first))
    return (reader.load(table.place) if table.is_path else reader.table(table.place)).select(CHANGE_COLUMNS[0])
