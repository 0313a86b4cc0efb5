"""Delta tables by path or by name: one moment of a table, its rows at a version, its change feed, its history.

Used by ``view`` for sources and target alike. Delta's Python API tells of a table by jobs, each a tenth of a second of
a refresh; a moment and the newest commits come from the log behind it, which has them without one.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem, UsageError
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CONFS = {
    "spark.sql.extensions": _EXTENSION,
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What a session with Delta is started with."""
CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_CHANGE_FEED = "delta.enableChangeDataFeed"


def check_session(spark: SparkSession) -> None:
    """``EnvironmentProblem`` where this session cannot maintain Delta tables."""
    if is_connect(spark):
        raise EnvironmentProblem(
            "PARALAGG_DELTA_MISSING",
            "a Spark Connect session cannot maintain a recursive table: a refresh needs the engine's jar beside it",
            hint="use a classic session; over Connect, recursive_agg over spark.read.format('delta') works",
        )
    if importlib.util.find_spec("delta") is None:
        raise EnvironmentProblem(
            "PARALAGG_DELTA_MISSING",
            "delta-spark is not installed",
            hint="pip install 'pyspark-paralagg[delta]', and build the session by configure_spark_with_delta_pip",
        )
    if _EXTENSION not in (spark.conf.get("spark.sql.extensions", None) or ""):
        raise EnvironmentProblem(
            "PARALAGG_DELTA_MISSING",
            "this session runs without Delta's extension",
            value=spark.conf.get("spark.sql.extensions", None),
            place="spark.sql.extensions",
            hint=f"start it with {' and '.join(f'{k}={v}' for k, v in DELTA_CONFS.items())}; "
            "docs/guide/delta.md has the lines",
        )


@dataclass(frozen=True)
class Snapshot:
    """A table at one moment. ``id`` tells it from another that stood at its place before."""

    version: int
    id: str
    schema: StructType
    has_change_feed: bool
    transactions: Mapping[str, int]

    @cached_property
    def columns(self) -> dict[str, str]:
        """The type of each column."""
        return {f.name: f.dataType.simpleString() for f in self.schema.fields}


@dataclass(frozen=True)
class Commit:
    """What the log tells of a version beside its rows."""

    version: int
    operation: str
    user_metadata: str | None
    metrics: Mapping[str, str]


class Table:
    """A Delta table, which need not be there yet. A place with a slash is a path."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self.spark = spark
        self.place = place
        self.is_path = "/" in place

    def snapshot(self) -> Snapshot | None:
        """The newest moment; None where there is no Delta table."""
        from pyspark.sql.types import StructType  # noqa: PLC0415 - pyspark is optional

        delta = self._delta()
        if delta is None:
            return None
        none = self.spark._jvm.scala.Option.empty()  # type: ignore[union-attr]  # noqa: SLF001 - no public way
        found = delta._jdt.deltaLog().update(False, none, none)  # noqa: FBT003, SLF001 - as the module says
        metadata = found.metadata()
        feed = metadata.configuration().get(_CHANGE_FEED)
        return Snapshot(
            version=int(found.version()),
            id=str(metadata.id()),
            schema=StructType.fromJson(json.loads(found.schema().json())),
            has_change_feed=feed.isDefined() and str(feed.get()).lower() == "true",
            transactions=_transactions(found),
        )

    def read(self, version: int) -> DataFrame:
        """All rows of a version."""
        return self._load({"versionAsOf": str(version)})

    def changes(self, first: int, last: int) -> DataFrame:
        """The change feed of the versions from ``first`` to ``last``; what is wrong with it may show when it runs."""
        return self._load({"readChangeFeed": "true", "startingVersion": str(first), "endingVersion": str(last)})

    def commits(self, newest: int) -> Iterator[Commit]:
        """The commits from version ``newest`` back, as far as the log has them; each is read when it is asked for."""
        log = self._delta()._jdt.deltaLog()  # noqa: SLF001 - as the module says
        none = self.spark._jvm.scala.Option.empty()  # type: ignore[union-attr]  # noqa: SLF001 - no public way
        for version in range(newest, -1, -1):
            found = log.getChanges(version, version, none, False)  # noqa: FBT003 - py4j knows no names of parameters
            if not found.hasNext():
                return
            actions = _each(found.next()._2().iterator())  # noqa: SLF001 - a Scala pair
            told = next((a for a in actions if a.getClass().getSimpleName() == "CommitInfo"), None)
            info = {} if told is None else json.loads(told.json())["commitInfo"]
            yield Commit(
                version, info.get("operation", "unknown"), info.get("userMetadata"), info.get("operationMetrics", {})
            )

    def history(self) -> list[tuple[Commit, Any]]:
        """All commits and when they were made, newest first."""
        columns = ("version", "operation", "userMetadata", "operationMetrics", "timestamp")
        delta = self._delta()
        rows = [] if delta is None else delta.history().select(*columns).collect()
        return [(Commit(row[0], row[1], row[2], row[3] or {}), row[4]) for row in rows]

    def exists_as_something_else(self) -> bool:
        """Whether a catalog has a table of this name that is not Delta's."""
        return not self.is_path and self.spark.catalog.tableExists(self.place) and self._delta() is None

    def _load(self, options: dict[str, str]) -> DataFrame:
        reader = self.spark.read.options(**options)
        return reader.format("delta").load(self.place) if self.is_path else reader.table(self.place)

    def _delta(self) -> Any:  # noqa: ANN401 - delta ships no types
        return find_table(self.spark, self.place, is_path=self.is_path)


def find_table(spark: SparkSession, place: str, *, is_path: bool) -> Any:  # noqa: ANN401 - likewise
    """Delta's own handle of a table; None where there is none."""
    from delta.tables import DeltaTable  # noqa: PLC0415 - delta is optional
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - pyspark is optional

    try:
        return DeltaTable.forPath(spark, place) if is_path else DeltaTable.forName(spark, place)
    except AnalysisException as problem:
        if problem.getCondition() in ("DELTA_MISSING_DELTA_TABLE", "DELTA_TABLE_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND"):
            return None
        raise


def open_sources(spark: SparkSession, sources: Mapping[str, str]) -> dict[str, Table]:
    """The tables of ``sources``; ``UsageError`` where one is not named well."""
    for name, place in sources.items():
        if not isinstance(place, str) or not place:
            raise UsageError(
                "PARALAGG_DELTA_SOURCE",
                f"the source {name!r} is a {type(place).__name__}, not a path or a name",
                value=place,
                place=f"source {name}",
                hint='sources={"edges": "lake/edges"}: a path (with a slash) or a name in the catalog',
            )
    return {name: Table(spark, place) for name, place in sources.items()}


def snapshot_of(name: str, table: Table) -> Snapshot:
    """The newest moment of a source; ``UsageError`` where it is not there."""
    found = table.snapshot()
    if found is None:
        raise UsageError(
            "PARALAGG_DELTA_SOURCE",
            f"the source {name!r} is no Delta table: {table.place}",
            value=table.place,
            place=f"source {name}",
            hint="a place with a slash is a path, any other a name in the catalog",
        )
    return found


def _transactions(snapshot: Any) -> dict[str, int]:  # noqa: ANN401 - likewise
    """From the checksum beside the newest commit; the log itself where that has none, by a job."""
    checksum = snapshot.checksumOpt()
    known = checksum.get().setTransactions() if checksum.isDefined() else checksum
    found = known.get() if known.isDefined() else snapshot.setTransactions()
    return {str(t.appId()): int(t.version()) for t in _each(found.iterator())}


def _each(iterator: Any) -> Iterator[Any]:  # noqa: ANN401 - a py4j object
    while iterator.hasNext():
        yield iterator.next()
