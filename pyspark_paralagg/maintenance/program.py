"""Analyse base and step once over references to the sources, and substitute rows for the references in each run.

``base(t)`` and ``step(d, t)`` are called with references (`RecursiveReference`), so one analysed plan serves two uses.
A full refresh substitutes every source at its version. An incremental refresh substitutes changed rows, read by read
(``template``).
"""

from __future__ import annotations

import hashlib
import json
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import Declaration, recursive
from pyspark_paralagg.api.fitting import NarrowBaseError, widened
from pyspark_paralagg.api.relations import conform, typed_relation
from pyspark_paralagg.backends.choose import analysed_aggregators, relation_class
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.lowering.struct_type import struct_of
from pyspark_paralagg.maintenance.template import Read, Template, reading
from pyspark_paralagg.program.functions.value_range import is_float
from pyspark_paralagg.report.engine_report import report
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.arguments import check_dataframe
from pyspark_paralagg.session.attach import Shim, reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.kept import Keeping
    from pyspark_paralagg.maintenance.recursion import Frames, Recursion, Sources
    from pyspark_paralagg.maintenance.template import Reading
    from pyspark_paralagg.program.program import Relation

_CONFS = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive")
IGNORED_OPTIONS = ("backend", "join_order")
"""Options that do not change the result."""


class Program:
    """A recursion over sources of known schemas.

    ``fingerprint`` differs if the program differs. ``obstacle`` is the reason why no refresh of it can be incremental,
    as far as text and options decide; None if they do not exclude it.
    """

    def __init__(self, spark: SparkSession, recursion: Recursion, sources: Sources) -> None:
        self.recursion = recursion
        self._spark = spark
        bases = {}
        for name, declared in recursion.relations.items():
            bases[name] = self._call("base", name, sources, partial(declared.base, sources))
            self._check_frame("base", name, bases[name])
        self._analyse(bases, sources)
        self._check_untracked()
        self.fingerprint = self._fingerprint()
        self.obstacle = self._obstacle()

    def _analyse(self, bases: Frames, sources: Sources) -> None:
        recursion, spark = self.recursion, self._spark
        relations = tuple(typed_relation(n, bases[n], d.keys, d.aggs, 0) for n, d in recursion.relations.items())
        for relation in relations:
            _check_traces(relation)
        self.relations = relations
        try:
            base = {r.name: conform(bases[r.name], r, "base", is_base=True) for r in relations}
            # A step reads a relation's columns, not the supplied ones (witnesses).
            state = {
                r.name: reference(spark, r.name, struct_of([(c.name, c.type) for c in r.columns], bases[r.name]))
                for r in relations
            }
            step = self._call("step", recursion.name, sources, partial(recursion.step, state, sources))
            for r in relations:
                self._check_frame("step", r.name, step[r.name])
            rows = {r.name: conform(step[r.name], r) for r in relations}
        except NarrowBaseError as narrow:
            wide = widened(bases[narrow.relation], narrow.types)
            return self._analyse({**bases, narrow.relation: wide}, sources)
        self._base = {n: self._template(df) for n, df in base.items()}
        self._step = {n: self._template(df) for n, df in rows.items()}
        return None

    @property
    def relation(self) -> Relation:
        """Return the only relation."""
        [relation] = self.relations
        return relation

    @property
    def columns(self) -> dict[str, str]:
        """Return the type of each column of the only relation."""
        return {c.name: c.type for c in self.relation.columns}

    def whole(self, frames: Frames, keeping: Keeping | None = None) -> dict[str, DataFrame]:
        """Return the fixpoint over these rows; lazy, except on plain DataFrames. ``keeping`` is for its run."""
        bases = {n: t.fill(reading(frames, {})) for n, t in self._base.items()}
        if keeping is None:
            return self._run({n: self._declare(n, base) for n, base in bases.items()}, frames, {})
        settled = {  # all rows are new
            n: self._declare(n, base, base.limit(0), settled=True, keeping=keeping) for n, base in bases.items()
        }
        return self._run(settled, frames, {})

    def obstacle_after(self, whole: DataFrame) -> str | None:
        """Return why a later refresh cannot continue ``whole``, a relation of the fixpoint; None if it can."""
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
        """Return why changed rows of the sources ``changed`` cannot be maintained; None if they can."""
        for read in self._reads(changed):
            if read.blocker is not None and (self.adds_only or not read.negated):
                return f"the program reads {read.source} below {read.blocker}, where new rows may remove result rows"
            if self.adds_only and read.merger is not None:
                return f"the program reads {read.source} below {read.merger}, where a new row may not be new to a sum"
        return None if not self.adds_only else self._product_of(changed)

    def rejects(self, changed: set[str]) -> bool:
        """Return whether the program reads one of the sources ``changed`` on the right side of an anti join."""
        return any(read.negated for read in self._reads(changed))

    def reads_some(self, changed: set[str]) -> bool:
        """Return whether the program reads one of the sources ``changed``."""
        return any(True for _ in self._reads(changed))

    def _reads(self, changed: set[str]) -> Iterator[Read]:
        """Yield the reads of these sources."""
        for template in (*self._base.values(), *self._step.values()):
            yield from (read for read in template.reads if read.source in changed)

    def _product_of(self, changed: set[str]) -> str | None:
        """Return why sums have no difference for each changed source: a branch multiplies the changes of two."""
        for template in (*self._base.values(), *self._step.values()):
            reads = [read for read in template.reads if read.source in changed]
            for at, read in enumerate(reads):
                if any(not read.is_beside(later) for later in reads[at + 1 :]):
                    return f"one branch of the program reads {read.source} together with another changed source"
        return None

    @property
    def adds_only(self) -> bool:
        """Return whether all aggregates are sums and counts, and there is one."""
        dependents = [d for r in self.relations for d in r.dependents]
        return all(r.dependents for r in self.relations) and all(d.definition.is_sum for d in dependents)

    @property
    def adds_exactly(self) -> bool:
        """Return whether sums have no rounding: of integers and decimals, and not to a tolerance."""
        types = [d.column.type for r in self.relations for d in r.dependents]
        return not any(map(is_float, types)) and self.recursion.options.get("tolerance") is None

    @property
    def has_witnesses(self) -> bool:
        """Return whether values follow from witnesses (``mcount``, ``msum``, ``h_index``), which no stored row has."""
        return any(d.supplied for r in self.relations for d in r.dependents)

    @property
    def grows(self) -> bool:
        """Return whether the engine can go on with new rows of the sources alone: they reach its rules one by one."""
        reads = [read for template in self._step.values() for read in template.reads]
        return all(read.rowwise for read in reads if read.source is not None)

    @property
    def has_rowwise_base(self) -> bool:
        """Return whether each row of the base comes from one row of a source."""
        return all(read.rowwise for template in self._base.values() for read in template.reads)

    def candidates(self, new: Frames, rows: Reading, *, base_only: bool = False) -> Frames:
        """Return the rows that one application of base and step derives from the ``new`` rows of sources.

        It joins them with ``rows`` of the other reads. ``base_only``: without the step. The result has the relations
        whose rules read a changed source.
        """

        def derived(template: Template) -> list[DataFrame]:
            reads = template.changed(new)
            return [template.with_new(read, some, rows) for read, some in reads if not read.negated]

        return self._derived(derived, base_only=base_only)

    def rejected(self, changed: Frames, rows: Reading, most: Reading, *, now: bool) -> Frames:
        """Return what base and step would derive if no row of ``changed`` rejected it in an anti join.

        ``most`` reads all rows that there are or were. ``now``: of that, what is no longer rejected over ``rows``,
        since those of ``changed`` have left.
        """

        def derived(template: Template) -> list[DataFrame]:
            reads = template.changed(changed)
            return [template.rejected(read, by, rows, most, now=now) for read, by in reads if read.negated]

        return self._derived(derived)

    def _derived(self, derived: Callable[[Template], list[DataFrame]], *, base_only: bool = False) -> Frames:
        """Return what is ``derived`` from base and step of each relation, if anything is."""
        found: dict[str, DataFrame] = {}
        for relation in self.relations:
            templates = [self._base[relation.name], *([] if base_only else [self._step[relation.name]])]
            parts = [conform(part, relation) for template in templates for part in derived(template)]
            if parts:
                found[relation.name] = reduce(lambda a, b: a.unionAll(b), parts)
        return found

    def derived_from(self, some: Frames, rows: Reading) -> dict[str, list[DataFrame]]:
        """Return the rows that the step derives with the rows ``some`` in place of one read of a relation.

        There is one DataFrame for each of those reads. The other reads have all ``rows``.
        """
        return {
            relation.name: [
                conform(template.with_new(read, some[read.name], rows), relation)
                for template in [self._step[relation.name]]
                for read in template.reads
                if read.source is None
            ]
            for relation in self.relations
        }

    def all_candidates(self, frames: Frames, stored: Frames) -> Frames:
        """Return the rows that base and step derive from all rows of the sources and from ``stored``."""
        rows = reading(frames, stored)
        step = {r.name: conform(self._step[r.name].fill(rows), r) for r in self.relations}
        return {name: base.unionAll(step[name]) for name, base in self.base_rows(frames).items()}

    def changes(
        self,
        candidates: Frames,
        frames: Frames,
        stored: Frames,
        backend: str | None = "spark",
        keeping: Keeping | None = None,
    ) -> dict[str, DataFrame]:
        """Continue the fixpoint ``stored`` with ``candidates``; return the rows that change; lazy.

        If it goes on from a kept state, that has the stored rows and the sources before: ``stored`` are then the base
        rows that sources have lost, and ``frames`` the new rows. Raises ``UnsupportedError`` if ``backend`` does not
        support it.
        """
        settled = {
            n: self._declare(n, candidates.get(n, rows.limit(0)), rows, settled=True, keeping=keeping)
            for n, rows in stored.items()
        }
        return self._run(settled, frames, {"backend": backend})

    def base_rows(self, frames: Frames) -> Frames:
        """Return all rows of the base."""
        return {r.name: conform(self._base[r.name].fill(reading(frames, {})), r) for r in self.relations}

    def over(self, base: Frames, frames: Frames, backend: str | None) -> dict[str, DataFrame]:
        """Return the fixpoint over other rows of the base; lazy."""
        return self._run({n: self._declare(n, rows) for n, rows in base.items()}, frames, {"backend": backend})

    def _declare(self, name: str, base: DataFrame, initial: DataFrame | None = None, **how: Any) -> Declaration:  # noqa: ANN401 - settled, keeping
        declared, are_several = self.recursion.relations[name], len(self.relations) > 1
        return Declaration(base, declared.keys, declared.aggs, initial, is_output=are_several, **how)

    def _run(
        self, declarations: Mapping[str, Declaration], frames: Frames, options: Mapping[str, Any]
    ) -> dict[str, DataFrame]:
        step, options = self.step_over(frames), {**self.recursion.options, **options}
        return recursive(declarations, lambda **state: step(state), name=self.recursion.name, **options)

    def step_over(self, frames: Frames) -> Callable[[Mapping[str, DataFrame]], dict[str, DataFrame]]:
        """Return the step over these rows of the sources, as a function of the relations."""

        def step(state: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
            return {name: template.fill(reading(frames, state)) for name, template in self._step.items()}

        return step

    def _template(self, df: DataFrame) -> Template:
        facts = Shim(self._spark).reads(df, list(self.recursion.relations))
        names = ("name", "blocker", "negated", "side", "merger", "rowwise", "branches")
        reads = tuple(Read(*(read.get(name) for name in names)) for read in facts["reads"])
        return Template(df, reads, facts)

    def _call(self, function: str, relation: str, sources: Sources, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - unchecked
        from pyspark.errors import AnalysisException, PySparkAttributeError  # noqa: PLC0415 - pyspark is optional
        from pyspark.sql import DataFrame as AnyDataFrame  # noqa: PLC0415 - likewise

        try:
            return call()
        except (AnalysisException, AttributeError) as problem:
            # PySpark 3.5 raises Python's own for a column that is not there.
            is_column = isinstance(getattr(problem, "obj", None), AnyDataFrame)
            if not (is_column or isinstance(problem, AnalysisException | PySparkAttributeError)):
                raise
            columns = "; ".join(f"{n}({', '.join(df.columns)})" for n, df in sources.items())
            raise UsageError(
                "PARALAGG_DELTA_PROGRAM",
                f"{function} does not match its sources: {str(problem).splitlines()[0]}",
                place=f"{function} of {relation}",
                hint=f"correct the columns; the sources are {columns}",
            ) from problem

    def _check_frame(self, function: str, relation: str, result: object) -> None:
        place = f"{function} of {relation}"
        check_dataframe(f"the result of {function}", result, place, "PARALAGG_DELTA_PROGRAM")

    def _check_untracked(self) -> None:
        """Raise ``UsageError`` if the program reads other tables, whose changes a refresh would miss."""
        for template in (*self._base.values(), *self._step.values()):
            for other in template.facts["others"]:
                raise UsageError(
                    "PARALAGG_DELTA_UNTRACKED",
                    f"the program reads {other}, which is not one of its sources",
                    value=other,
                    place=self.recursion.name,
                    hint='name it in sources, and read it as t["name"]; a recursive table needs Delta tables',
                )

    def _fingerprint(self) -> str:
        confs = semantic_confs(self._spark)
        options = {k: repr(v) for k, v in self.recursion.options.items() if k not in IGNORED_OPTIONS}
        parts: list[Any] = [confs, options]
        for relation in self.relations:
            templates = (self._base[relation.name], self._step[relation.name])
            plans = [[t.facts["text"], t.facts["rows"]] for t in templates]
            dependents = [
                [d.column.name, d.aggregator, d.order, [c.name for c in d.supplied]] for d in relation.dependents
            ]
            aggregators, keys = aggregator_texts(self._spark, relation), [k.name for k in relation.keys]
            columns = {c.name: c.type for c in relation.columns}
            parts.append([plans, aggregators, keys, dependents, columns])
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _obstacle(self) -> str | None:
        options = self.recursion.options
        if self.adds_only and len(self.relations) > 1:
            return "sums of several relations cannot continue from stored rows"
        if not (self.adds_only or all(r.is_idempotent for r in self.relations)):
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
        is_rounded = any(is_float(d.column.type) for r in self.relations for d in r.dependents)
        return "; sums of doubles may differ from a full run in their last digits" if is_rounded else ""

    @property
    def unstable(self) -> str | None:
        """Return why the same rows may give another result (the clock, random numbers); None if they cannot."""
        names = [t.facts.get("unstable") for t in (*self._base.values(), *self._step.values())]
        return next((f"the program calls {name}, which is not deterministic" for name in names if name), None)


def _check_traces(relation: Relation) -> None:
    for trace in relation.traces:
        raise UsageError(
            "PARALAGG_PATH",
            f"a maintained result has no paths and hops: {trace.kind!r} of {trace.name!r}",
            value=trace.name,
            place=f"relation {relation.name}",
            hint="keep a parent by ra.min_by, or compute the paths by recursive_agg when they are read",
        )


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
    return [Shim(spark).reads(df, [])["text"] for df in frames]
