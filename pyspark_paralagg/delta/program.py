"""Base and step, analysed once over names of sources, and what is made of them with real rows.

``base(t)`` and ``step(d, t)`` are called with references (`RecursiveReference`), so that one analysed plan serves all:
every source at its version (a full refresh), or one *read* of a changed source replaced by its new rows (a
refresh that continues). A source that is read twice is replaced once for each: with ΔE and the new E,

    E ⋈ d ⋈ E   gains   ΔE ⋈ d ⋈ E  and  E ⋈ d ⋈ ΔE

which is so as long as no operator above a read takes rows away when rows come in (`Reads.scala`). Of a union only the
branch that has the read is computed: the others have no part in what is new.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.arguments import not_a_dataframe
from pyspark_paralagg.api.dataframe import Declaration, recursive
from pyspark_paralagg.api.relations import Aggregations, Keys, conform, typed_relation
from pyspark_paralagg.backends.choose import analysed_aggregators, relation_class
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.lowering.struct_type import struct_of
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.report.engine_report import report
from pyspark_paralagg.session.attach import bridge, reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_paralagg.program.program import Relation

Frames = Mapping[str, "DataFrame"]
_SOURCE = "source "
_CONFS = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive")
MEANINGLESS = ("backend", "join_order")
"""Options that leave the rows as they are."""


class Sources(Mapping[str, "DataFrame"]):
    """What ``base`` and ``step`` receive as ``t``: a DataFrame for each source."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames

    def __getitem__(self, name: str) -> DataFrame:
        """The source ``name``; ``UsageError`` where there is none."""
        if name not in self._frames:
            hint = did_you_mean(name, self._frames)
            raise UsageError("PARALAGG_DELTA_SOURCE", f"there is no source {name!r}", value=name, hint=hint)
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)


def references(spark: SparkSession, schemas: Mapping[str, StructType]) -> Sources:
    """Sources of these columns without rows: what a program is analysed over."""
    return Sources({name: reference(spark, _SOURCE + name, _nullable(schema)) for name, schema in schemas.items()})


@dataclass(frozen=True)
class Recursion:
    """What the user said: as ``recursive_agg`` has it, but for rows that come from ``Sources``."""

    name: str
    keys: Keys
    aggs: Aggregations
    base: Callable[[Sources], DataFrame]
    step: Callable[[DataFrame, Sources], DataFrame]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Read:
    """One reading of a reference: what blocks it, and which child of each union above it stands below."""

    name: str
    blocker: str | None
    branches: Mapping[str, int]

    @property
    def source(self) -> str | None:
        """The source that is read; None for the relation itself."""
        return self.name.removeprefix(_SOURCE) if self.name.startswith(_SOURCE) else None

    def is_beside(self, other: Read) -> bool:
        """Whether the two stand in different branches of a union."""
        return any(other.branches.get(union, child) != child for union, child in self.branches.items())


@dataclass(frozen=True)
class Template:
    """An analysed plan over references, which it reads in this order."""

    df: DataFrame
    reads: tuple[Read, ...]
    facts: Mapping[str, Any]

    def filled(self, rows: Callable[[Read], DataFrame]) -> DataFrame:
        """The plan over ``rows`` of each read."""
        session = self.df.sparkSession
        frames = session._jvm.java.util.ArrayList()  # type: ignore[union-attr]  # noqa: SLF001 - no public way
        for read in self.reads:
            frames.add(rows(read)._jdf)  # noqa: SLF001 - likewise
        return type(self.df)(bridge(session).substitute(self.df._jdf, frames), session)  # noqa: SLF001 - likewise


class Program:
    """A recursion over sources of known schemas.

    ``fingerprint`` is another one where the program is. ``obstacle`` says why a refresh can never continue it, as far
    as its text and options tell; None where they do not.
    """

    def __init__(self, spark: SparkSession, recursion: Recursion, sources: Sources) -> None:
        self.recursion = recursion
        self._spark = spark
        base = self._called("base", sources, lambda: recursion.base(sources))
        self.relation = typed_relation(recursion.name, base, recursion.keys, recursion.aggs, 0)
        self._base = self._template(conform(base, self.relation, "base"))
        # What is supplied (witnesses) is not what a step reads: it sees the relation's own columns.
        columns = struct_of([(c.name, c.type) for c in self.relation.columns], base)
        state = reference(spark, recursion.name, columns)
        step = self._called("step", sources, lambda: recursion.step(state, sources))
        self._step = self._template(conform(step, self.relation))
        self._check_others()
        self.fingerprint = self._fingerprint()
        self.obstacle = self._obstacle()

    @property
    def columns(self) -> dict[str, str]:
        """The type of each column of the result."""
        return {c.name: c.type for c in self.relation.columns}

    def whole(self, frames: Frames) -> DataFrame:
        """The fixpoint over these rows; lazy, but on plain DataFrames."""
        base = self._base.filled(lambda read: frames[read.source or ""])
        return self._run(Declaration(base, self.recursion.keys, self.recursion.aggs), frames, {})

    def unfit(self, whole: DataFrame) -> str | None:
        """Why the fixpoint ``whole`` cannot be continued later, as far as the compiler knows; None where it can."""
        found = relation_class(whole)
        if found == "lattice":
            return None
        if found is None:
            told = report(whole)
            why = "" if told is None else f": {told.reason}"
            return f"the last full refresh ran on plain DataFrames, which prove nothing{why}"
        return f"{self.recursion.name} is {found}, and only a lattice goes on from the rows that it has"

    def blocked(self, changed: set[str]) -> str | None:
        """Why new rows of the sources ``changed`` may take rows away; None where they cannot."""
        for read in (*self._base.reads, *self._step.reads):
            if read.blocker is not None and read.source in changed:
                return f"the program reads {read.source} below {read.blocker}, where new rows may take others away"
        return None

    def candidates(self, new: Frames, frames: Frames, stored: DataFrame) -> DataFrame | None:
        """What the ``new`` rows of sources derive at once, with all rows of the others and the ``stored`` result.

        None where the program does not read what is new.
        """
        parts: list[DataFrame] = []
        for template in (self._base, self._step):
            touched = [
                (read, new[read.source]) for read in template.reads if read.source is not None and read.source in new
            ]
            parts += [template.filled(_instead(read, rows, frames, stored)) for read, rows in touched]
        rows = [conform(part, self.relation) for part in parts]
        return reduce(lambda a, b: a.unionAll(b), rows) if rows else None

    def changes(self, candidates: DataFrame, frames: Frames, stored: DataFrame) -> DataFrame:
        """The rows of the fixpoint that ``candidates`` change in ``stored``; lazy.

        Raises ``UnsupportedError`` where the Spark engine cannot.
        """
        settled = Declaration(candidates, self.recursion.keys, self.recursion.aggs, stored, settled=True)
        return self._run(settled, frames, {"backend": "spark"})

    def _run(self, declaration: Declaration, frames: Frames, options: Mapping[str, Any]) -> DataFrame:
        name = self.recursion.name

        def step(**state: DataFrame) -> dict[str, DataFrame]:
            rows = self._step.filled(lambda read: state[name] if read.source is None else frames[read.source])
            return {name: rows}

        return recursive({name: declaration}, step, name=name, **{**self.recursion.options, **options})[name]

    def _template(self, df: DataFrame) -> Template:
        told = json.loads(bridge(self._spark).reads(df._jdf, self.recursion.name))  # noqa: SLF001 - likewise
        reads = tuple(Read(r["name"], r.get("blocker"), r["branches"]) for r in told["reads"])
        return Template(df, reads, told)

    def _called(self, what: str, sources: Sources, call: Callable[[], DataFrame]) -> DataFrame:
        from pyspark.errors import AnalysisException, PySparkAttributeError  # noqa: PLC0415 - pyspark is optional
        from pyspark.sql import DataFrame as AnyDataFrame  # noqa: PLC0415 - likewise

        try:
            made = call()
        except (AnalysisException, PySparkAttributeError) as problem:
            known = "; ".join(f"{n}({', '.join(df.columns)})" for n, df in sources.items())
            raise UsageError(
                "PARALAGG_DELTA_PROGRAM",
                f"{what} does not fit its sources: {str(problem).splitlines()[0]}",
                place=f"{what} of {self.recursion.name}",
                hint=f"the sources are {known}",
            ) from problem
        if not isinstance(made, AnyDataFrame):
            raise not_a_dataframe(
                f"what {what} returned", made, f"{what} of {self.recursion.name}", "PARALAGG_DELTA_PROGRAM"
            )
        return made

    def _check_others(self) -> None:
        """Rows that are neither a source's nor the program's own would change unseen."""
        for template in (self._base, self._step):
            for other in template.facts["others"]:
                raise UsageError(
                    "PARALAGG_DELTA_UNTRACKED",
                    f"the program reads {other}, which is none of its sources",
                    value=other,
                    place=self.recursion.name,
                    hint='make it a Delta table, name it in sources, and read it as t["name"]',
                )

    def _fingerprint(self) -> str:
        own = aggregator_texts(self._spark, self.relation)
        plans = [[t.facts["text"], t.facts["rows"]] for t in (self._base, self._step)]
        confs = confs_of_meaning(self._spark)
        shown = [[d.column.name, d.aggregator, d.order, [c.name for c in d.supplied]] for d in self.relation.dependents]
        options = {k: repr(v) for k, v in self.recursion.options.items() if k not in MEANINGLESS}
        whole = [plans, own, confs, [k.name for k in self.relation.keys], shown, self.columns, options]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()

    def _obstacle(self) -> str | None:
        options = self.recursion.options
        if any(d.supplied for d in self.relation.dependents):
            return "mcount and msum keep their witnesses to themselves: the table has only what they count to"
        if not self.relation.is_idempotent:
            return "what adds up cannot go on from its sums: only lattices (min, max, sets, ...) can"
        if options.get("mode") == "iterate":
            return 'mode="iterate" asks for all rows anew'
        for option in ("max_iterations", "tolerance"):
            if options.get(option) is not None:
                return f"{option} is set, and where a refresh goes on is no round of the whole"
        return None

    @property
    def unstable(self) -> str | None:
        """Why the same rows may give another result: the clock, chance; None where they do not."""
        found = [t.facts.get("unstable") for t in (self._base, self._step)]
        return next((f"the program calls {name}, which is another value each time" for name in found if name), None)


def confs_of_meaning(spark: SparkSession) -> list[str | None]:
    """What a program's meaning depends on beside its text."""
    return [spark.conf.get(key, None) for key in _CONFS]


def aggregator_texts(spark: SparkSession, relation: Relation) -> list[str]:
    """What the users' aggregators of ``relation`` compute, the same in every session."""
    frames = analysed_aggregators(spark, relation)
    return [json.loads(bridge(spark).reads(df._jdf, ""))["text"] for df in frames]  # noqa: SLF001 - no public way


def _nullable(schema: StructType) -> StructType:
    """Throughout: rows of a change feed, or of a later version, may have nulls where these have none."""
    from pyspark.sql.types import StructField  # noqa: PLC0415 - pyspark is optional

    return type(schema)([StructField(f.name, f.dataType, nullable=True) for f in schema.fields])


def _instead(changed: Read, rows: DataFrame, frames: Frames, stored: DataFrame) -> Callable[[Read], DataFrame]:
    """``rows`` at the read ``changed``, nothing in branches beside it, everything elsewhere."""

    def chosen(read: Read) -> DataFrame:
        if read is changed:
            return rows
        whole = stored if read.source is None else frames[read.source]
        return whole.limit(0) if read.is_beside(changed) else whole

    return chosen
