"""Adapt the Spark engine: step -> analysis -> Program -> Plan -> one lazy fixpoint a relation.

Python decides and the JVM executes: this module calls only the shim's ``Bridge`` in the JVM, except for the guards of
assumptions. Sources are numbered in one sequence: sources of the analysed step, then bases and initial rows, then
results of lower strata. The data for ``explain`` and ``report`` is stored in the Plan's JSON, so it survives further
transformations.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from pyspark_paralagg.backends.analysed import Analysis, analysed, references_of
from pyspark_paralagg.backends.compiled import compiled_job
from pyspark_paralagg.backends.guards import guards
from pyspark_paralagg.backends.kept import check_same
from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError
from pyspark_paralagg.report.engine_report import SPARK
from pyspark_paralagg.session.attach import Shim, bridge
from pyspark_paralagg.session.interrupt import cancel_on_interrupt
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.analysed import Analyser
    from pyspark_paralagg.backends.kept import Keeping
    from pyspark_paralagg.backends.protocol import Job
    from pyspark_paralagg.compile.compile_step import CompiledStep
    from pyspark_paralagg.plan.plan import Plan


class Offload(Protocol):
    """Ranks that run a job instead of the gang."""

    def admit(self, plan: Plan) -> None:
        """Raise if ranks should not take the job with this Plan. Called once, first."""

    def computed(self, plan: Plan, position: int, relation: str) -> dict[str, Any]:
        """Return how ranks compute a relation of the stratum at ``position``, for the Plan's JSON."""


class EngineAnalysis(Analysis, Protocol):
    """Analysed steps, with the Catalyst expressions that the engine needs."""

    def fixpoint(
        self, plan: dict[str, Any], stratum: int, relation: str, sources: Sequence[DataFrame], reason: str
    ) -> DataFrame:
        """Return the lazy result of one relation of one stratum."""


class SparkBackend:
    """The gang-scheduled engine of the shim."""

    name = SPARK

    def obstacle(self, session: SparkSession) -> str | None:
        """Return the first obstacle: a missing or wrong jar, dynamic allocation, no slots."""
        if is_connect(session):
            from pyspark_paralagg.connect.plugin import obstacle  # noqa: PLC0415 - needs grpc

            return obstacle(session)
        try:
            shim = bridge(session)
        except EnvironmentProblem as problem:
            return problem.message + (f"; {problem.hint}" if problem.hint else "")
        if shim.slotsSoon(session._jsparkSession) > 0:  # noqa: SLF001 - pyspark has no public way to the JVM session
            return None
        if session.sparkContext.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
            return "dynamic allocation is on (spark.dynamicAllocation.enabled), but a gang needs fixed slots"
        return "the application got no executor with a free core within 30 s"

    def run(self, job: Job, reason: str) -> dict[str, DataFrame]:
        """Build the lazy result of each relation; nothing runs yet.

        Raises ``UsageError`` (the step's columns, an assumption about an unknown column), ``VerificationError``
        (refused), ``UnsupportedError`` (the engine does not support the step).
        """
        return Builder(job, reason).build()


class Builder:
    """The builder of one job's fixpoints.

    ``offload`` returns how ranks compute each relation; without it the gang does.
    """

    def __init__(self, job: Job, reason: str, offload: Offload | None = None) -> None:
        self.job = job
        self.reason = reason
        self.offload = offload
        self.session = job.session

    def build(self) -> dict[str, DataFrame]:
        """Return the lazy result of each relation."""
        self.job.refuse_functors("the Spark engine" if self.offload is None else "the engine outside of the JVM")
        if not is_connect(self.session):
            cancel_on_interrupt(self.session)
        start = time.perf_counter()
        shim = shim_of(self.session)
        found = analysed(self.job, shim)
        step_sources = len(found.json["sources"])
        starts = self.job.starts
        checks = guards(self.job.assume, found.json)  # before the proof, which knows no wrong names

        def compile_step() -> CompiledStep:
            return compiled_job(self.job, found.json, found.relations, packs=True)

        keeping = self._keeping
        compiled = compile_step() if keeping is None else keeping.compiled(found.json, compile_step)
        if keeping is None:
            _refuse_settled_sums(compiled.plan)
        if self.offload is not None:
            self.offload.admit(compiled.plan)
        plan, guarded = _guarded(compiled.plan, found.analysis, checks, step_sources + len(starts))
        compiled = replace(compiled, plan=plan, seconds=time.perf_counter() - start)
        removed = None
        if keeping is not None and self.job.removed is not None:
            analysis = shim.analyse(self.job.removed(references_of(self.job, shim)))
            check_same(found.json, analysis.json())
            removed = [analysis.source(source["id"]) for source in found.json["sources"]]
        return self._fixpoints(compiled, found.analysis, step_sources, [*starts, *guarded], removed)

    @property
    def _keeping(self) -> Keeping | None:
        return self.job.keeping if self.offload is None else None

    def _fixpoints(
        self,
        compiled: CompiledStep,
        analysis: EngineAnalysis,
        step_sources: int,
        extra: list[DataFrame],
        removed: list[DataFrame] | None,
    ) -> dict[str, DataFrame]:
        """Return one node a result; a stratum reads the results of lower strata as further sources.

        ``removed`` are the sources of the only stratum with the rows that its kept state loses.
        """
        results: dict[str, DataFrame] = {}
        outputs = self.job.outputs.values()
        for position, (names, plan) in enumerate(compiled.strata(step_sources + len(extra), outputs)):
            data = compiled.to_json(plan)
            narrower = data["narrower"]
            sources = [*extra, *results.values(), *(removed or [])]
            together = [name for name in names if name in self.job.together]
            if len(together) == 1 or self.offload is not None:
                together = []
            for name in names:
                if self.offload is not None:
                    data["offload"] = self.offload.computed(plan, position, name)
                    data["narrower"] = _offload_narrower(plan, narrower, position, name, self.offload)
                data["together"] = together if name in together else []
                own = data
                if self._keeping is not None and len(compiled.plan.strata) == 1:
                    own = self._keeping.kept(data, None if removed is None else step_sources + len(extra))
                results[name] = analysis.fixpoint(own, position, name, sources, self.reason)
        return {name: results[output] for name, output in self.job.outputs.items()}


def _refuse_settled_sums(plan: Plan) -> None:
    """Raise ``UnsupportedError`` if sums continue from stored rows; only a run that keeps its state has the others."""
    for stratum in plan.strata:
        for relation in stratum.relations:
            if relation.settled and stratum.relation_class != "lattice":
                raise UnsupportedError(
                    "PARALAGG_NOT_CONTINUABLE",
                    f"{relation.name} is {stratum.relation_class}, and only a lattice can continue from stored rows",
                    value=stratum.relation_class,
                    place=f"relation {relation.name}",
                )


def _guarded(
    plan: Plan, analysis: EngineAnalysis, checks: Mapping[int, Callable[[DataFrame], DataFrame]], next_source: int
) -> tuple[Plan, list[DataFrame]]:
    """Wrap sources with an assumed column, so that a row that violates the assumption ends the query."""
    wrapped_source: dict[int, int] = {}
    sources: list[DataFrame] = []
    for source, with_check in checks.items():
        wrapped_source[source] = next_source + len(sources)
        sources.append(with_check(analysis.source(source)))
    inputs = tuple(replace(i, source=wrapped_source.get(i.source, i.source)) for i in plan.inputs)
    return replace(plan, inputs=inputs), sources


def shim_of(session: SparkSession) -> Analyser[EngineAnalysis]:
    """Return the shim of the session's JVM, or of its Connect server."""
    if is_connect(session):
        from pyspark_paralagg.connect.plugin import ConnectShim  # noqa: PLC0415 - needs grpc

        return ConnectShim(session)
    return Shim(session)


def _offload_narrower(
    plan: Plan, narrower: list[dict[str, Any]], position: int, relation: str, offload: Offload
) -> list[dict[str, Any]]:
    """Return the reduced strata of the relation in ``narrower`` (the Plan's JSON), each with its offload."""
    offloaded = []
    for smaller, data in zip(plan.narrower, narrower, strict=True):
        if smaller.relation == relation:
            strata = (*plan.strata[:position], smaller.stratum, *plan.strata[position + 1 :])
            reduced_plan = replace(plan, inputs=smaller.inputs, strata=strata)
            offloaded.append({**data, "offload": offload.computed(reduced_plan, position, relation)})
    return offloaded
