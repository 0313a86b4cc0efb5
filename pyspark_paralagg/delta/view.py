"""Define ``RecursiveTable``: a recursion whose result is kept in a Delta table and refreshed from change feeds.

It is the API of ``delta``. It checks the arguments; ``refresh`` runs a refresh.
"""

from __future__ import annotations

import inspect
import time
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import recursive
from pyspark_paralagg.delta.decide import other_rows
from pyspark_paralagg.delta.follow import follow_sources
from pyspark_paralagg.delta.layers import Layers
from pyspark_paralagg.delta.record import last_refresh, refreshes
from pyspark_paralagg.delta.refresh import Refresh
from pyspark_paralagg.delta.report import RefreshReport, Status
from pyspark_paralagg.delta.tables import Table, check_place, check_session, open_sources, source_snapshot
from pyspark_paralagg.delta.text import Text, WholeText
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.maintenance.program import Program
from pyspark_paralagg.maintenance.recursion import Recursion, Sources, references
from pyspark_paralagg.session.arguments import check_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from pyspark_paralagg.api.relations import Aggregations, Keys
    from pyspark_paralagg.delta.tables import Snapshot

    Make = Callable[[SparkSession, Mapping[str, StructType]], Layers | WholeText]


class RecursiveTable:
    """A recursive aggregate over Delta tables, kept in a Delta table.

    >>> view = ra.delta.RecursiveTable(                                                   # doctest: +SKIP
    ...     spark, "lake/dist", keys="node", aggs={"dist": "min"},
    ...     sources={"edges": "lake/edges", "starts": "lake/starts"},
    ...     base=lambda t: t["starts"],
    ...     step=lambda d, t: d.join(t["edges"], d.node == t["edges"].src)
    ...         .select(t["edges"].dst.alias("node"), (d.dist + t["edges"].weight).alias("dist")))
    >>> view.refresh()                                                                    # doctest: +SKIP

    target
        The Delta table of the result: a path (with a slash) or a name in the catalog. The first refresh creates it, or
        fills an existing table that has the result's columns and no rows. A table with rows that no refresh wrote is
        never overwritten: ``UsageError`` ``PARALAGG_DELTA_TARGET``.
    keys, aggs
        As in :func:`recursive_agg`.
    sources
        The Delta tables that the program reads, as paths or names in the catalog, by the names that the program uses.
        Every table whose rows may change must be one of them (``PARALAGG_DELTA_UNTRACKED``).
    base, step
        As in :func:`recursive_agg`, over ``t``, a mapping from source to DataFrame. Both are called with DataFrames
        that have columns and no rows: they can be joined, filtered and so on, but not counted or collected. Each
        refresh calls them again. Outside values that they use (today's date) are part of the program: if one changes,
        the program has changed.
    name, mode, assume, max_iterations, on_limit, tolerance, join_order, backend
        As in :func:`recursive_agg`.

    A table does not refresh itself: call ``refresh`` as often as the result has to be up to date.

    Raises ``EnvironmentProblem`` ``PARALAGG_DELTA_MISSING`` if the session has no Delta. Raises ``UsageError``:
    ``PARALAGG_DELTA_SOURCE`` if a source does not exist, ``PARALAGG_DELTA_PROGRAM`` if base or step do not fit the
    sources, ``PARALAGG_DELTA_UNTRACKED``, and the errors of :func:`recursive_agg` for keys and aggregates.
    """

    def __init__(  # noqa: PLR0913 - the arguments of the API, as the documentation has them
        self,
        spark: SparkSession,
        target: str,
        *,
        keys: Keys,
        aggs: Aggregations = None,
        sources: Mapping[str, str],
        base: Callable[[Sources], DataFrame],
        step: Callable[[DataFrame, Sources], DataFrame],
        name: str = "r",
        **options: Any,  # noqa: ANN401 - those of recursive_agg
    ) -> None:
        inspect.signature(recursive).bind({}, step, name=name, **options)  # raises TypeError for an unknown option
        recursion = Recursion.single(name, keys, aggs, base, step, options)

        def make(session: SparkSession, schemas: Mapping[str, StructType]) -> Layers:
            return Layers([Program(session, recursion, references(session, schemas))], name)

        self._open(spark, target, sources, make, options.get("backend"))

    @classmethod
    def datalog(  # noqa: PLR0913 - likewise
        cls,
        spark: SparkSession,
        target: str,
        text: str,
        relation: str,
        *,
        sources: Mapping[str, str],
        aggregators: Sequence[Any] = (),
        **options: Any,  # noqa: ANN401 - those of ra.datalog
    ) -> RecursiveTable:
        """Maintain ``relation`` of a Datalog text whose inputs are ``sources``; options as in ``ra.datalog``.

        A refresh can be incremental if the relation recurses. Other recursive relations that it needs are kept in
        companion tables beside the target, ``<target>__<relation>``. Any other relation is computed as a whole.

        >>> ra.delta.RecursiveTable.datalog(spark, "lake/dist", '''                       # doctest: +SKIP
        ...     dist(x, 0) :- start(x).
        ...     dist(y, $MIN(d + w)) :- dist(x, d), edge(x, y, w).
        ... ''', "dist", sources={"edge": "lake/edges", "start": "lake/starts"})
        """
        check_type("text", text, str, "the program's text; of a file, Path(...).read_text()")
        view = cls.__new__(cls)
        view._open(  # noqa: SLF001 - a constructor
            spark, target, sources, Text(text, relation, options, aggregators).program, options.get("backend")
        )
        return view

    def _open(
        self, spark: SparkSession, target: str, sources: Mapping[str, str], make: Make, backend: str | None
    ) -> None:
        check_session(spark)
        check_place("target", target, "PARALAGG_DELTA_TARGET")
        self._spark = spark
        self._target = Table(spark, target)
        self._sources = open_sources(spark, sources)
        self._make = make
        self._backend = backend
        self._program({name: source_snapshot(name, table) for name, table in self._sources.items()})

    def refresh(self, *, full: bool | None = None) -> RefreshReport:
        """Bring the table up to the newest versions of its sources, incrementally if possible.

        ``full=True`` computes all rows again, whatever has changed. Deleted and updated rows are not maintained if that
        took more than 1.2 times as long as a full refresh, and 2 s more, before; ``full=False`` maintains them
        nevertheless, which writes fewer rows.

        >>> print(view.refresh())                                                         # doctest: +SKIP
        incremental refresh of lake/dist: version 4 written
          why incremental: the sources had only inserts: 2 into edges
          ...

        Each source is read at the version that it had when the call began. Rows and consumed versions are written in
        one commit, so an interrupted refresh leaves the table unchanged. (A target in the catalog that did not exist
        may be left empty; the next refresh fills it.) If no source has new rows, nothing is written, not even the
        versions of the sources.

        Raises ``ConflictError`` ``PARALAGG_DELTA_CONFLICT`` if another writer wrote the table at the same time; call
        ``refresh`` again. Raises ``UsageError``: ``PARALAGG_DELTA_TARGET`` if the target has rows that no refresh
        wrote, ``PARALAGG_DELTA_SCHEMA`` if it has other columns, ``PARALAGG_DELTA_SOURCE`` if a source is missing, and
        ``PARALAGG_DELTA_PROGRAM`` if a source lacks columns that the program reads. Errors of the recursion are raised
        unchanged.
        """
        _check_full(full)
        began = time.perf_counter()
        return Refresh(self._spark, self._target, *self._read_sources(), began).run(self._backend, full=full)

    def follow(self, checkpoint: str, **trigger: Any) -> StreamingQuery:  # noqa: ANN401 - those of Spark
        """Start a streaming query that refreshes the table when a source has a new commit, and return it.

        >>> query = view.follow("lake/_checkpoints/dist", processingTime="10 seconds")    # doctest: +SKIP
        >>> query.stop()                                                                  # doctest: +SKIP

        checkpoint
            The folder of the query's state: one for each table. After a restart with the same folder it goes on.
        trigger
            The arguments of Spark's ``DataStreamWriter.trigger``, such as ``processingTime="1 minute"`` or
            ``availableNow=True``. Without any, a refresh runs as soon as the one before it has ended.

        The first refresh runs at once. A refresh takes all commits since the last one, so rows and reports
        (``history()``) are those of ``refresh()``. Its errors end the query: ``query.exception()`` has them.

        Raises ``UsageError`` ``PARALAGG_DELTA_SOURCE`` if a source does not exist or has no change feed. Spark raises
        its own errors for a wrong trigger, and the query ends with Delta's error if a source's columns change.
        """
        check_place("checkpoint", checkpoint, "PARALAGG_BAD_OPTION")
        _, sources = self._read_sources()
        return follow_sources(self._spark, sources, self.refresh, checkpoint, trigger)

    def status(self) -> Status:
        """Return what the next refresh would do, and why. Reads no rows except those of the sources' change feeds.

        >>> view.status().kind                                                            # doctest: +SKIP
        'incremental'
        """
        began = time.perf_counter()
        refresh = Refresh(self._spark, self._target, *self._read_sources(), began)
        decision = refresh.decide(self._backend, with_rows=False)
        pending = {name: counts for name, counts in decision.changes.counts.items() if counts}
        return Status(self._target.place, decision.kind, decision.reason, refresh.versions, pending)

    def history(self) -> list[dict[str, Any]]:
        """Return the refreshes that wrote the table, newest first, as far back as its log goes.

        Each has ``version``, ``timestamp`` (a ``datetime`` as in Delta's history), ``kind``, ``reason``, ``sources``
        (the consumed version of each), and Delta's own ``metrics`` (names to numbers as text).

        >>> [(h["version"], h["kind"]) for h in view.history()]                           # doctest: +SKIP
        [(4, 'incremental'), (0, 'full')]
        """
        return [
            {
                "version": commit.version,
                "timestamp": timestamp,
                "kind": record.kind,
                "reason": record.reason,
                "sources": {name: consumed.version for name, consumed in record.sources.items()},
                "metrics": dict(commit.metrics),
            }
            for commit, record, timestamp in refreshes(self._target)
        ]

    def recomputed(self) -> DataFrame:
        """Return the recursion over the source versions that the last refresh has read; lazy.

        Its rows are those of the table, and ``ra.why(view, node=7)`` explains them.

        Raises ``UsageError`` ``PARALAGG_WHY`` if no refresh wrote the table, or if its rows are of another program, of
        other sources or of another writer.
        """
        program, sources = self._read_sources()
        snapshot = self._target.snapshot()
        last = None if snapshot is None else last_refresh(self._target, snapshot.version)
        reason = other_rows(program, last, {name: s for name, (_, s) in sources.items()})
        if last is None or reason is not None:
            message = f"the rows of {self._target.place} cannot be recomputed: {reason}"
            hint = "call refresh(), and ask then"
            raise UsageError("PARALAGG_WHY", message, value=self._target.place, place="ra.why", hint=hint)
        consumed = last.record.sources
        return program.whole({n: t.read(consumed[n].version).alias(n) for n, (t, _) in sources.items()})

    def __repr__(self) -> str:
        """Return the target and its sources."""
        return f"RecursiveTable({self._target.place!r}, sources={[t.place for t in self._sources.values()]})"

    def _read_sources(self) -> tuple[Layers | WholeText, dict[str, tuple[Table, Snapshot]]]:
        snapshots = {name: source_snapshot(name, table) for name, table in self._sources.items()}
        program = self._program(snapshots)
        return program, {name: (table, snapshots[name]) for name, table in self._sources.items()}

    def _program(self, snapshots: Mapping[str, Snapshot]) -> Layers | WholeText:
        return self._make(self._spark, {name: snapshot.schema for name, snapshot in snapshots.items()})


def _check_full(full: object) -> None:
    if full is not None and not isinstance(full, bool):
        hint = "use True, False, or None, which decides by what has changed"
        raise UsageError("PARALAGG_BAD_OPTION", f"full={full!r} is not valid", value=full, place="full", hint=hint)
