"""Read Delta tables by path or by name: a snapshot, the rows of a version, the change feed, the history.

Sources and targets use it. Delta's Python API reads table details by Spark jobs, each of which takes a tenth of a
second of a refresh. Snapshots and the newest commits are therefore read from the Delta log, which needs no job.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem, UsageError
from pyspark_paralagg.session.arguments import type_name
from pyspark_paralagg.session.condition import condition_of
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CONFS = {
    "spark.sql.extensions": _EXTENSION,
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""The confs with which a session with Delta starts."""
CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_CHANGE_FEED = "delta.enableChangeDataFeed"


def check_session(spark: SparkSession) -> None:
    """Raise ``EnvironmentProblem`` if this session cannot maintain Delta tables."""
    if is_connect(spark):
        raise EnvironmentProblem(
            "PARALAGG_DELTA_MISSING",
            "a Spark Connect session cannot maintain a recursive table: a refresh needs the engine's jar in the same "
            "JVM",
            hint="use a classic session; with Connect, use recursive_agg on spark.read.format('delta')",
        )
    if importlib.util.find_spec("delta") is None:
        raise EnvironmentProblem(
            "PARALAGG_DELTA_MISSING",
            "delta-spark is not installed",
            hint="pip install 'pyspark-paralagg[delta]', and build the session with configure_spark_with_delta_pip",
        )
    if _EXTENSION not in (spark.conf.get("spark.sql.extensions", None) or ""):
        raise EnvironmentProblem(
            "PARALAGG_DELTA_MISSING",
            "this session runs without Delta's extension",
            value=spark.conf.get("spark.sql.extensions", None),
            place="spark.sql.extensions",
            hint=f"start it with {' and '.join(f'{k}={v}' for k, v in DELTA_CONFS.items())}; see docs/guide/delta.md",
        )


@dataclass(frozen=True)
class Snapshot:
    """A table at one version. ``id`` differs from that of any earlier table at the same place."""

    version: int
    id: str
    schema: StructType
    has_change_feed: bool
    transactions: Mapping[str, int]
    bytes: int | None
    """The sum of its files; None if the newest commit has no checksum."""

    @cached_property
    def columns(self) -> dict[str, str]:
        """Return the type of each column."""
        return {f.name: f.dataType.simpleString() for f in self.schema.fields}

    @cached_property
    def identities(self) -> dict[str, str]:
        """Return the type of each column, and its ids if the table has a column mapping.

        A column that is dropped and added again has another id, and nulls in the rows before.
        """
        return {f.name: " ".join([f.dataType.simpleString(), *_ids(f)]) for f in self.schema.fields}


@dataclass(frozen=True)
class Commit:
    """The log's metadata of a version."""

    version: int
    operation: str
    user_metadata: str | None
    metrics: Mapping[str, str]
    seconds: float | None = None
    """When its rows were written, in seconds since 1970, by the writer's clock."""


class Table:
    """A Delta table, which may not exist yet. A place with a slash is a path."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self.spark = spark
        self.place = place
        self.is_path = "/" in place

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; None if there is no Delta table."""
        from pyspark.sql.types import StructType  # noqa: PLC0415 - pyspark is optional

        delta = self._delta()
        if delta is None:
            return None
        none = self.spark._jvm.scala.Option.empty()  # type: ignore[union-attr]  # noqa: SLF001 - no public way
        snapshot = delta._jdt.deltaLog().update(False, none, none)  # noqa: FBT003, SLF001 - see the module docstring
        metadata = snapshot.metadata()
        feed = metadata.configuration().get(_CHANGE_FEED)
        checksum = snapshot.checksumOpt()  # of the newest commit
        return Snapshot(
            version=int(snapshot.version()),
            id=str(metadata.id()),
            schema=StructType.fromJson(json.loads(snapshot.schema().json())),
            has_change_feed=feed.isDefined() and str(feed.get()).lower() == "true",
            transactions=_transactions(snapshot, checksum),
            bytes=int(checksum.get().tableSizeBytes()) if checksum.isDefined() else None,
        )

    def read(self, version: int) -> DataFrame:
        """Return all rows of a version."""
        return self._load({"versionAsOf": str(version)})

    def changes(self, first: int, last: int) -> DataFrame:
        """Return the change feed of the versions from ``first`` to ``last``; some of its errors appear when it runs."""
        return self._load({"readChangeFeed": "true", "startingVersion": str(first), "endingVersion": str(last)})

    def commits(self, newest: int) -> Iterator[Commit]:
        """Yield the commits from version ``newest`` backwards, as far as the log has them; each is read on demand."""
        log = self._delta()._jdt.deltaLog()  # noqa: SLF001 - see the module docstring
        none = self.spark._jvm.scala.Option.empty()  # type: ignore[union-attr]  # noqa: SLF001 - no public way
        table = () if importlib.metadata.version("delta-spark").startswith("3.") else (none,)  # of a catalog
        for version in range(newest, -1, -1):
            changes = log.getChanges(version, version, *table, False)  # noqa: FBT003 - py4j takes no keyword arguments
            if not changes.hasNext():
                return
            actions = _iterate(changes.next()._2().iterator())  # noqa: SLF001 - a Scala pair
            commit_info = next((a for a in actions if a.getClass().getSimpleName() == "CommitInfo"), None)
            if commit_info is None:
                yield Commit(version, "unknown", None, {})
                continue
            metadata, metrics = commit_info.userMetadata(), commit_info.operationMetrics()
            yield Commit(
                version,
                str(commit_info.operation()),
                str(metadata.get()) if metadata.isDefined() else None,
                {m._1(): m._2() for m in _iterate(metrics.get().iterator())} if metrics.isDefined() else {},  # noqa: SLF001 - Scala pairs
                commit_info.timestamp().getTime() / 1000,
            )

    def history(self) -> list[tuple[Commit, Any]]:
        """Return all commits with their timestamps, newest first."""
        columns = ("version", "operation", "userMetadata", "operationMetrics", "timestamp")
        delta = self._delta()
        rows = [] if delta is None else delta.history().select(*columns).collect()
        return [(Commit(row[0], row[1], row[2], row[3] or {}), row[4]) for row in rows]

    def exists_as_something_else(self) -> bool:
        """Return whether the catalog has a table of this name that is not a Delta table."""
        return not self.is_path and self.spark.catalog.tableExists(self.place) and self._delta() is None

    def _load(self, options: dict[str, str]) -> DataFrame:
        reader = self.spark.read.options(**options)
        return reader.format("delta").load(self.place) if self.is_path else reader.table(self.place)

    def _delta(self) -> Any:  # noqa: ANN401 - delta ships no types
        return find_table(self.spark, self.place, is_path=self.is_path)


def companion_places(place: str, relations: Iterable[str]) -> dict[str, str]:
    """Return the places of the companion tables of ``relations`` beside the target at ``place``.

    >>> companion_places("lake/even/", ["odd", "c.odd", "c_odd"])
    {'odd': 'lake/even__odd', 'c.odd': 'lake/even__c_odd', 'c_odd': 'lake/even__c_odd_2'}
    >>> companion_places("lake.`even`", ["odd"])
    {'odd': 'lake.`even__odd`'}
    """
    start, end = place.rstrip("/"), ""
    if "/" not in place and place.endswith("`"):
        start, end = place[:-1], "`"
    places: dict[str, str] = {}
    taken = set[str]()  # names in a catalog are equal if their lower case is
    for relation in relations:
        plain = re.sub(r"\W", "_", relation)
        numbers = itertools.count(2)
        name = plain
        while name.lower() in taken:
            name = f"{plain}_{next(numbers)}"
        taken.add(name.lower())
        places[relation] = f"{start}__{name}{end}"
    return places


def find_table(spark: SparkSession, place: str, *, is_path: bool) -> Any:  # noqa: ANN401 - likewise
    """Return Delta's own handle of a table; None if there is no Delta table."""
    from delta.tables import DeltaTable  # noqa: PLC0415 - delta is optional
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - pyspark is optional

    try:
        return DeltaTable.forPath(spark, place) if is_path else DeltaTable.forName(spark, place)
    except AnalysisException as problem:
        if condition_of(problem) in ("DELTA_MISSING_DELTA_TABLE", "DELTA_TABLE_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND"):
            return None
        raise


def check_place(argument: str, place: object, code: str) -> None:
    """Raise ``UsageError`` with this code if ``place`` is no text, or an empty one."""
    if isinstance(place, str) and place:
        return
    found = "empty" if place == "" else f"a {type_name(place)}, not a path or a name"
    hint = 'pass a path (with a slash) or a name in the catalog, such as "lake/edges"'
    raise UsageError(code, f"{argument} is {found}", value=place, place=argument, hint=hint)


def _check_mapping(sources: object) -> None:
    if not isinstance(sources, Mapping):
        message = f"sources is a {type_name(sources)}, not a dict from names to tables"
        hint = 'pass a dict: sources={"edges": "lake/edges"}'
        raise UsageError("PARALAGG_DELTA_SOURCE", message, value=sources, place="sources", hint=hint)


def open_sources(spark: SparkSession, sources: Mapping[str, str]) -> dict[str, Table]:
    """Return the tables of ``sources``; raise ``UsageError`` if one has no path or name."""
    _check_mapping(sources)
    for name, place in sources.items():
        check_place(f"the source {name!r}", place, "PARALAGG_DELTA_SOURCE")
    return {name: Table(spark, place) for name, place in sources.items()}


def source_snapshot(name: str, table: Table) -> Snapshot:
    """Return the newest snapshot of a source; raise ``UsageError`` if there is no Delta table."""
    snapshot = table.snapshot()
    if snapshot is None:
        raise UsageError(
            "PARALAGG_DELTA_SOURCE",
            f"the source {name!r} is not a Delta table: {table.place}",
            value=table.place,
            place=f"source {name}",
            hint="use a slash in a path; a place without one is a name in the catalog",
        )
    return snapshot


def _transactions(snapshot: Any, checksum: Any) -> dict[str, int]:  # noqa: ANN401 - likewise
    """Return transaction versions by application: from the newest commit's checksum, else from the log by a job."""
    checksum_transactions = checksum.get().setTransactions() if checksum.isDefined() else checksum
    transactions = checksum_transactions.get() if checksum_transactions.isDefined() else snapshot.setTransactions()
    return {str(t.appId()): int(t.version()) for t in _iterate(transactions.iterator())}


def _iterate(iterator: Any) -> Iterator[Any]:  # noqa: ANN401 - a py4j object
    while iterator.hasNext():
        yield iterator.next()


def _ids(part: StructField | DataType) -> list[str]:
    """Return the ids that Delta's column mapping gives to a column and the fields in it."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType  # noqa: PLC0415 - pyspark is optional

    if isinstance(part, StructField):
        own = part.metadata.get("delta.columnMapping.id")
        return ([] if own is None else [str(own)]) + _ids(part.dataType)
    parts: list[StructField | DataType] = []
    if isinstance(part, StructType):
        parts = [*part.fields]
    elif isinstance(part, ArrayType):
        parts = [part.elementType]
    elif isinstance(part, MapType):
        parts = [part.keyType, part.valueType]
    return [i for p in parts for i in _ids(p)]
