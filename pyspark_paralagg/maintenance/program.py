"""Analyse base and step once over references to the sources, and substitute rows for the references in each run.

``base(t)`` and ``step(d, t)`` are called with references (`RecursiveReference`), so one analysed plan serves two uses.
A full refresh substitutes every source at its version. An incremental refresh substitutes, for one *read* of a changed
source at a time, the new rows alone. A source that is read twice is thus substituted twice: with ΔE and the new E,

    E ⋈ d ⋈ E   gains   ΔE ⋈ d ⋈ E  and  E ⋈ d ⋈ ΔE

This holds if no operator above a read removes rows when its input gets new rows (`Reads.scala`). Of a union, only the
branch with that read is computed: the other branches derive nothing new from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import Declaration, recursive
from pyspark_paralagg.api.fitting import NarrowBaseError, widened
from pyspark_paralagg.api.relations import Aggregations, Keys, conform, typed_relation
from pyspark_paralagg.backends.choose import analysed_aggregators, relation_class
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.lowering.struct_type import struct_of
from pyspark_paralagg.program.functions.value_range import is_float
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.report.engine_report import report
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.arguments import check_callable, check_dataframe
from pyspark_paralagg.session.attach import bridge, reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_paralagg.backends.kept import Keeping
    from pyspark_paralagg.program.program import Relation

Frames = Mapping[str, "DataFrame"]
_SOURCE = "source "
_CONFS = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive")
IGNORED_OPTIONS = ("backend", "join_order")
"""Options that do not change the result."""


class Sources(Mapping[str, "DataFrame"]):
    """The argument ``t`` of ``base`` and ``step``: a DataFrame for each source."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames

    def __getitem__(self, name: str) -> DataFrame:
        """Return the source ``name``; raise ``UsageError`` if there is none."""
        if name not in self._frames:
            hint = did_you_mean(name, self._frames)
            raise UsageError("PARALAGG_DELTA_SOURCE", f"the source {name!r} does not exist", value=name, hint=hint)
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)


def references(spark: SparkSession, schemas: Mapping[str, StructType]) -> Sources:
    """Return references to sources of these columns, without rows; a program is analysed over them."""
    return Sources({name: reference(spark, _SOURCE + name, _nullable(schema)) for name, schema in schemas.items()})


@dataclass(frozen=True)
class Recursion:
    """The user's arguments: those of ``recursive_agg``, with ``base`` and ``step`` over ``Sources``."""

    name: str
    keys: Keys
    aggs: Aggregations
    base: Callable[[Sources], DataFrame]
    step: Callable[[DataFrame, Sources], DataFrame]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Read:
    """One read of a reference: the operators above it that block or merge its rows, and its branch of each union.

    ``rowwise``: operators between it and the recursion take each row alone.
    """

    name: str
    blocker: str | None
    merger: str | None
    rowwise: bool
    branches: Mapping[str, int]

    @property
    def source(self) -> str | None:
        """Return the source that is read; None for the relation itself."""
        return self.name.removeprefix(_SOURCE) if self.name.startswith(_SOURCE) else None

    def is_beside(self, other: Read) -> bool:
        """Return whether the two reads are in different branches of a union."""
        return any(other.branches.get(union, child) != child for union, child in self.branches.items())


@dataclass(frozen=True)
class Template:
    """An analysed plan over references, with its reads in order."""

    df: DataFrame
    reads: tuple[Read, ...]
    facts: Mapping[str, Any]

    def fill(self, rows: Callable[[Read], DataFrame]) -> DataFrame:
        """Return the plan with ``rows`` substituted for each read."""
        session = self.df.sparkSession
        frames = session._jvm.java.util.ArrayList()  # type: ignore[union-attr]  # noqa: SLF001 - no public way
        for read in self.reads:
            frames.add(rows(read)._jdf)  # noqa: SLF001 - likewise
        return type(self.df)(bridge(session).substitute(self.df._jdf, frames), session)  # noqa: SLF001 - likewise


class Program:
    """A recursion over sources of known schemas.

    ``fingerprint`` differs if the program differs. ``obstacle`` is the reason why no refresh of it can be incremental,
    as far as text and options decide; None if they do not exclude it.
    """

    def __init__(self, spark: SparkSession, recursion: Recursion, sources: Sources) -> None:
        check_callable("base", recursion.base, "pass a function of the sources: base=lambda t: t[...]")
        hint = "pass a function of the rows and the sources: step=lambda r, t: r.join(t[...], ...).select(...)"
        check_callable("step", recursion.step, hint)
        self.recursion = recursion
        self._spark = spark
        base = self._call("base", sources, lambda: recursion.base(sources))
        try:
            self._analyse(base, sources)
        except NarrowBaseError as narrow:
            self._analyse(widened(base, narrow.types), sources)
        self._check_untracked()
        self.fingerprint = self._fingerprint()
        self.obstacle = self._obstacle()

    def _analyse(self, base: DataFrame, sources: Sources) -> None:
        recursion, spark = self.recursion, self._spark
        self.relation = typed_relation(recursion.name, base, recursion.keys, recursion.aggs, 0)
        if self.relation.traces:
            trace = self.relation.traces[0]
            raise UsageError(
                "PARALAGG_PATH",
                f"a maintained result has no paths and hops: {trace.kind!r} of {trace.name!r}",
                value=trace.name,
                place=f"relation {recursion.name}",
                hint="keep a parent by ra.min_by, or compute the paths by recursive_agg when they are read",
            )
        self._base = self._template(conform(base, self.relation, "base", is_base=True))
        # A step reads the relation's columns, not the supplied ones (witnesses).
        columns = struct_of([(c.name, c.type) for c in self.relation.columns], base)
        state = reference(spark, recursion.name, columns)
        step = self._call("step", sources, lambda: recursion.step(state, sources))
        self._step = self._template(conform(step, self.relation))

    @property
    def columns(self) -> dict[str, str]:
        """Return the type of each column of the result."""
        return {c.name: c.type for c in self.relation.columns}

    def whole(self, frames: Frames, keeping: Keeping | None = None) -> DataFrame:
        """Return the fixpoint over these rows; lazy, except on plain DataFrames. ``keeping`` is for its run."""
        base, keys, aggs = self._base.fill(lambda read: frames[read.source or ""]), *self._keys_and_aggs
        if keeping is None:
            return self._run(Declaration(base, keys, aggs), frames, {})
        settled = Declaration(base, keys, aggs, base.limit(0), settled=True, keeping=keeping)  # all rows are new
        return self._run(settled, frames, {})

    def obstacle_after(self, whole: DataFrame) -> str | None:
        """Return why a later refresh cannot continue the fixpoint ``whole``; None if the compiler allows it."""
        kind = relation_class(whole)
        if kind == ("accumulating" if self.adds_only else "lattice"):
            return None
        if kind is None:
            run = report(whole)
            reason = "" if run is None else f": {run.reason}"
            return f"the last full run was on plain DataFrames, without a proof{reason}"
        needed = "linear sums" if self.adds_only else "a lattice"
        return f"{self.recursion.name} is {kind}, and only {needed} can continue from stored rows"

    def obstacle_for(self, changed: set[str]) -> str | None:
        """Return why new rows of the sources ``changed`` may remove rows of the result; None if they cannot."""
        for read in (*self._base.reads, *self._step.reads):
            if read.blocker is not None and read.source in changed:
                return f"the program reads {read.source} below {read.blocker}, where new rows may remove result rows"
            if self.adds_only and read.merger is not None and read.source in changed:
                return f"the program reads {read.source} below {read.merger}, where a new row may not be new to a sum"
        return None if not self.adds_only else self._product_of(changed)

    def _product_of(self, changed: set[str]) -> str | None:
        """Return why sums have no difference for each changed source: a branch multiplies the changes of two."""
        for template in (self._base, self._step):
            reads = [read for read in template.reads if read.source in changed]
            for at, read in enumerate(reads):
                if any(not read.is_beside(later) for later in reads[at + 1 :]):
                    return f"one branch of the program reads {read.source} together with another changed source"
        return None

    @property
    def adds_only(self) -> bool:
        """Return whether all aggregates are sums and counts, and there is one."""
        dependents = self.relation.dependents
        return bool(dependents) and all(d.definition.is_sum for d in dependents)

    @property
    def grows(self) -> bool:
        """Return whether the engine can go on with new rows of the sources alone: they reach its rules one by one."""
        return not self.adds_only and all(read.rowwise for read in self._step.reads if read.source is not None)

    @property
    def has_rowwise_base(self) -> bool:
        """Return whether each row of the base comes from one row of a source."""
        return all(read.rowwise for read in self._base.reads)

    def candidates(
        self, new: Frames, frames: Frames, stored: DataFrame, *, base_only: bool = False
    ) -> DataFrame | None:
        """Return the rows that one application of base and step derives from the ``new`` rows of sources.

        It joins them with all rows of the other reads and with the ``stored`` result. ``base_only``: without the step.
        Return None if none of them reads a changed source.
        """
        parts: list[DataFrame] = []
        for template in (self._base,) if base_only else (self._base, self._step):
            changed_reads = [
                (read, new[read.source]) for read in template.reads if read.source is not None and read.source in new
            ]
            parts += [template.fill(_substitution(read, rows, frames, stored)) for read, rows in changed_reads]
        rows = [conform(part, self.relation) for part in parts]
        return reduce(lambda a, b: a.unionAll(b), rows) if rows else None

    def derived_from(self, some: DataFrame, frames: Frames, stored: DataFrame) -> list[DataFrame]:
        """Return the rows that the step derives with the rows ``some`` in place of one read of the relation.

        There is one DataFrame for each of those reads. The other reads have all ``stored`` rows.
        """
        reads = [read for read in self._step.reads if read.source is None]
        parts = (self._step.fill(_substitution(read, some, frames, stored)) for read in reads)
        return [conform(part, self.relation) for part in parts]

    def all_candidates(self, frames: Frames, stored: DataFrame) -> DataFrame:
        """Return the rows that base and step derive from all rows of the sources and from ``stored``."""
        step = self._step.fill(lambda read: stored if read.source is None else frames[read.source])
        return self.base_rows(frames).unionAll(conform(step, self.relation))

    def changes(
        self,
        candidates: DataFrame,
        frames: Frames,
        stored: DataFrame,
        backend: str | None = "spark",
        keeping: Keeping | None = None,
    ) -> DataFrame:
        """Continue the fixpoint ``stored`` with ``candidates``; return the rows that change; lazy.

        If it goes on from a kept state, that has the stored rows and the sources before: ``stored`` are then the base
        rows that sources have lost, and ``frames`` the new rows. Raises ``UnsupportedError`` if ``backend`` does not
        support it.
        """
        keys, aggs = self._keys_and_aggs
        settled = Declaration(candidates, keys, aggs, stored, settled=True, keeping=keeping)
        return self._run(settled, frames, {"backend": backend})

    def base_rows(self, frames: Frames) -> DataFrame:
        """Return all rows of the base."""
        return conform(self._base.fill(lambda read: frames[read.source or ""]), self.relation)

    def over(self, base: DataFrame, frames: Frames, backend: str | None) -> DataFrame:
        """Return the fixpoint over other rows of the base; lazy."""
        return self._run(Declaration(base, *self._keys_and_aggs), frames, {"backend": backend})

    @property
    def _keys_and_aggs(self) -> tuple[Keys, Aggregations]:
        return self.recursion.keys, self.recursion.aggs

    def _run(self, declaration: Declaration, frames: Frames, options: Mapping[str, Any]) -> DataFrame:
        name, step = self.recursion.name, self.step_over(frames)
        options = {**self.recursion.options, **options}
        return recursive({name: declaration}, lambda **state: step(state), name=name, **options)[name]

    def step_over(self, frames: Frames) -> Callable[[Mapping[str, DataFrame]], dict[str, DataFrame]]:
        """Return the step over these rows of the sources, as a function of the relation."""
        name = self.recursion.name

        def step(state: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
            return {name: self._step.fill(lambda read: state[name] if read.source is None else frames[read.source])}

        return step

    def _template(self, df: DataFrame) -> Template:
        facts = json.loads(bridge(self._spark).reads(df._jdf, self.recursion.name))  # noqa: SLF001 - likewise
        reads = tuple(
            Read(r["name"], r.get("blocker"), r.get("merger"), r["rowwise"], r["branches"]) for r in facts["reads"]
        )
        return Template(df, reads, facts)

    def _call(self, function: str, sources: Sources, call: Callable[[], DataFrame]) -> DataFrame:
        from pyspark.errors import AnalysisException, PySparkAttributeError  # noqa: PLC0415 - pyspark is optional
        from pyspark.sql import DataFrame as AnyDataFrame  # noqa: PLC0415 - likewise

        try:
            result = call()
        except (AnalysisException, AttributeError) as problem:
            # PySpark 3.5 raises Python's own for a column that is not there.
            is_column = isinstance(getattr(problem, "obj", None), AnyDataFrame)
            if not (is_column or isinstance(problem, AnalysisException | PySparkAttributeError)):
                raise
            columns = "; ".join(f"{n}({', '.join(df.columns)})" for n, df in sources.items())
            raise UsageError(
                "PARALAGG_DELTA_PROGRAM",
                f"{function} does not match its sources: {str(problem).splitlines()[0]}",
                place=f"{function} of {self.recursion.name}",
                hint=f"correct the columns; the sources are {columns}",
            ) from problem
        place = f"{function} of {self.recursion.name}"
        check_dataframe(f"the result of {function}", result, place, "PARALAGG_DELTA_PROGRAM")
        return result

    def _check_untracked(self) -> None:
        """Raise ``UsageError`` if the program reads other tables, whose changes a refresh would miss."""
        for template in (self._base, self._step):
            for other in template.facts["others"]:
                raise UsageError(
                    "PARALAGG_DELTA_UNTRACKED",
                    f"the program reads {other}, which is not one of its sources",
                    value=other,
                    place=self.recursion.name,
                    hint='name it in sources, and read it as t["name"]; a recursive table needs Delta tables',
                )

    def _fingerprint(self) -> str:
        aggregators = aggregator_texts(self._spark, self.relation)
        plans = [[t.facts["text"], t.facts["rows"]] for t in (self._base, self._step)]
        confs = semantic_confs(self._spark)
        dependents = [
            [d.column.name, d.aggregator, d.order, [c.name for c in d.supplied]] for d in self.relation.dependents
        ]
        options = {k: repr(v) for k, v in self.recursion.options.items() if k not in IGNORED_OPTIONS}
        parts = [plans, aggregators, confs, [k.name for k in self.relation.keys], dependents, self.columns, options]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _obstacle(self) -> str | None:
        options = self.recursion.options
        if any(d.supplied for d in self.relation.dependents):
            return "the table has the results of mcount, msum and h_index, but not their witnesses"
        if not (self.relation.is_idempotent or self.adds_only):
            return "sums beside other aggregates cannot continue from stored rows"
        if options.get("mode") == "iterate":
            return 'mode="iterate" recomputes all rows'
        for option in ("max_iterations", *([] if self.adds_only else ["tolerance"])):
            if options.get(option) is not None:
                return f"{option} is set, and a continued run has other rounds than a full one"
        return None

    @property
    def exactness(self) -> str:
        """Return how a continued result may differ from a full run, as the end of a sentence; empty if it cannot."""
        if not self.adds_only:
            return ""
        tolerance = self.recursion.options.get("tolerance")
        if tolerance is not None:
            return f"; each continued run adds an error within the tolerance {tolerance}"
        is_rounded = any(is_float(d.column.type) for d in self.relation.dependents)
        return "; sums of doubles may differ from a full run in their last digits" if is_rounded else ""

    @property
    def unstable(self) -> str | None:
        """Return why the same rows may give another result (the clock, random numbers); None if they cannot."""
        names = [t.facts.get("unstable") for t in (self._base, self._step)]
        return next((f"the program calls {name}, which is not deterministic" for name in names if name), None)


def continuing_backend(session: SparkSession, requested: str | None) -> str | None:
    """Return the engine that continues a fixpoint where ``requested`` (or the session's conf) computes it; else None.

    Plain DataFrames cannot: they recompute all rows in each iteration.
    """
    backend = requested or conf.read(session, conf.BACKEND)
    return {"auto": "spark", "dataframe": None}.get(backend, backend)


def semantic_confs(spark: SparkSession) -> list[str | None]:
    """Return the session's confs on which the result of a program depends."""
    return [spark.conf.get(key, None) for key in _CONFS]


def aggregator_texts(spark: SparkSession, relation: Relation) -> list[str]:
    """Return the user-defined aggregators of ``relation`` as texts, which are the same in every session."""
    frames = analysed_aggregators(spark, relation)
    return [json.loads(bridge(spark).reads(df._jdf, ""))["text"] for df in frames]  # noqa: SLF001 - no public way


def _nullable(schema: StructType) -> StructType:
    """Make all columns nullable: rows of a change feed, or of a later version, may have nulls."""
    from pyspark.sql.types import StructField  # noqa: PLC0415 - pyspark is optional

    return type(schema)([StructField(f.name, f.dataType, nullable=True) for f in schema.fields])


def _substitution(changed: Read, rows: DataFrame, frames: Frames, stored: DataFrame) -> Callable[[Read], DataFrame]:
    """Substitute ``rows`` at the read ``changed``, no rows in other branches of its unions, all rows elsewhere."""

    def substitute(read: Read) -> DataFrame:
        if read is changed:
            return rows
        all_rows = stored if read.source is None else frames[read.source]
        return all_rows.limit(0) if read.is_beside(changed) else all_rows

    return substitute
