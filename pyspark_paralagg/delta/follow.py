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
    first = _first_versions(spark, checkpoint, {name: snapshot.version for name, (_, snapshot) in sources.items()})
    streams = [_stream(spark, table, first[name]) for name, (table, _) in sources.items()]

    def run(_: DataFrame, __: int) -> None:
        refresh()

    changes = reduce(lambda a, b: a.unionAll(b), streams)
    writer = changes.writeStream.option("checkpointLocation", checkpoint).foreachBatch(run)
    return (writer.trigger(**trigger) if trigger else writer).start()


def _check_feed(name: str, table: Table, snapshot: Snapshot) -> None:
    if not snapshot.has_change_feed:
        raise UsageError(
            "PARALAGG_DELTA_SOURCE",
            f"the source {name!r} has no change feed, and a stream cannot follow it",
            value=table.place,
            place=f"source {name}",
            hint="ALTER TABLE ... SET TBLPROPERTIES (delta.enableChangeDataFeed = true), or call refresh() yourself",
        )


def _first_versions(spark: SparkSession, checkpoint: str, newest: Mapping[str, int]) -> dict[str, int]:
    """Return the versions in the checkpoint's file; write ``newest`` if there is none."""
    jvm: Any = spark._jvm  # noqa: SLF001 - pyspark has no public way to Hadoop's file systems
    file = jvm.org.apache.hadoop.fs.Path(checkpoint, _STARTS)
    files = file.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001 - likewise
    if files.exists(file):
        opened = files.open(file)
        try:
            stored: dict[str, int] = json.loads(bytes(opened.readAllBytes()))
        finally:
            opened.close()
        return {**newest, **stored}
    created = files.create(file)
    try:
        created.write(bytearray(json.dumps(dict(newest)).encode()))
    finally:
        created.close()
    return dict(newest)


def _stream(spark: SparkSession, table: Table, first: int) -> DataFrame:
    """Return the stream of a source's changes from the version ``first`` on."""
    reader = spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", str(first))
    return (reader.load(table.place) if table.is_path else reader.table(table.place)).select(CHANGE_COLUMNS[0])
