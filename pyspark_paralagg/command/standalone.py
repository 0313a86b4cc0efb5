"""A run without Spark: the text as one Plan, its files as Arrow, the engine of ``mpi_backend`` here or on ranks."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.datalog import located
from pyspark_paralagg.api.explain import explain_plan
from pyspark_paralagg.command import engine, outputs, tables
from pyspark_paralagg.command.progress import Progress
from pyspark_paralagg.command.table_results import TableResult
from pyspark_paralagg.command.work import work_folder
from pyspark_paralagg.compile import compile_stages
from pyspark_paralagg.compile.stages import stage_changes
from pyspark_paralagg.datalog.lower.requested import recursion_of, requested_program
from pyspark_paralagg.datalog.lower.unsigned import check_ansi
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import FixpointError, ParalaggError, UnsupportedError, UsageError, VerificationError
from pyspark_paralagg.program import patterns
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.text import show_program
from pyspark_paralagg.report.run_progress import Rate
from pyspark_paralagg.report.run_report import RunReport
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.ranks import check

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from mpi_backend.launch.preflight import Request
    from pyspark_paralagg.command.engine import Found
    from pyspark_paralagg.command.tables import Given
    from pyspark_paralagg.command.task import Options, Task
    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.report.run_progress import RunProgress

_ANSI = "spark.sql.ansi.enabled"
_KEYS = {
    k.name: k
    for k in (
        conf.MPI_LAUNCHER,
        conf.MPI_RANKS,
        conf.MPI_STAGING_DIR,
        conf.MPI_OVERSUBSCRIBE,
        conf.BROADCAST_MAX_BYTES,
        conf.CLIMB_MAX_ITERATIONS,
        conf.SUB_BUCKETS,
    )
}


@dataclass(frozen=True)
class Settings:
    """What ``--conf`` says, as far as it means something without Spark."""

    ansi: bool
    broadcast_max_bytes: int
    climb_limit: int
    sub_buckets: int
    request: Request

    @classmethod
    def of(cls, options: Options) -> Settings:
        """Raises ``UsageError`` ``PARALAGG_BAD_CONF`` for a key that has no meaning here, or a wrong value."""
        from mpi_backend.launch.preflight import Places, Request  # noqa: PLC0415 - Spark needs none of it
        from mpi_backend.machine import available_cores  # noqa: PLC0415 - Spark needs none of it

        given = dict(options.confs)
        for key, value in given.items():
            if key not in _KEYS and key != _ANSI:
                message = f"{key} means nothing to --backend {options.backend}, which runs without Spark"
                hint = f"there are {', '.join(sorted([*_KEYS, _ANSI]))}"
                raise UsageError("PARALAGG_BAD_CONF", message, value=value, place="--conf", hint=hint)
        values = {name: conf.parsed(key, given.get(name), "--conf") for name, key in _KEYS.items()}
        is_local = options.backend == "local"
        by_conf = options.ranks is None
        places = Places(*(f"--conf {name}" for name in Places()))
        request = Request(
            launcher="local" if is_local else values[conf.MPI_LAUNCHER.name],
            ranks=1 if is_local else options.ranks or values[conf.MPI_RANKS.name] or available_cores(),
            oversubscribe=values[conf.MPI_OVERSUBSCRIBE.name],
            staging=values[conf.MPI_STAGING_DIR.name],
            places=places if by_conf else places._replace(ranks="--ranks"),
        )
        ansi = conf.parsed(replace(conf.MPI_FALLBACK, name=_ANSI, default=True), given.get(_ANSI), "--conf")
        return cls(
            ansi,
            values[conf.BROADCAST_MAX_BYTES.name],
            values[conf.CLIMB_MAX_ITERATIONS.name],
            values[conf.SUB_BUCKETS.name],
            request,
        )


def run(task: Task, why: str | None = None) -> None:
    """Runs or explains the program; ``why`` is the reason where nobody has asked for it."""
    backend = str(task.options.backend)
    settings = Settings.of(task.options)
    for rows in task.deltas:
        raise tables.needs_spark(str(rows.path))
    check(settings.request)
    with Progress(sys.stderr, is_quiet=task.options.is_quiet) as progress:
        if why is not None:
            progress.say(f"{why}: the recursion runs in this process, as by --backend {backend}")
        began = time.perf_counter()
        given = tables.given(task.inputs)
        resolved = resolve_text(task.text, {name: files[0].columns for name, files in given.items()})
        check_ansi(resolved, ansi=settings.ansi)
        plan, explained = _compiled(task, settings, resolved, given)
        reason = why or f"asked for by --backend {backend}"
        if task.options.explain:
            part = task.options.explain
            told = explain_plan(part, *explained, (backend, reason))
            outputs.print_explained(task.wanted.names, told, part)
            return
        planned = time.perf_counter() - began
        with _errors_of_the_run():
            found = _computed(task, settings, resolved, plan, given, progress)
            results = {}
            for name in task.wanted.names:
                report = _report(found, resolved, name, backend, reason, planned)
                results[name] = TableResult(found.tables[name].select(list(resolved.names(name))), report)
            outputs.write_all(task, results, progress)


def _compiled(
    task: Task, settings: Settings, resolved: Resolved, given: Mapping[str, list[Given]]
) -> tuple[Plan, tuple[str, Any, dict[str, Any]]]:
    """The Plan, and what explains it: Program, stages, Plan as JSON."""
    program = replace(requested_program(resolved, task.wanted.names), mode=task.options.mode)
    sizes = {
        n: sum(one.size_bytes for one in given.get(source.relation, ())) for n, source in enumerate(resolved.sources)
    }
    inputs = tuple(replace(i, size_bytes=sizes.get(i.source)) for i in program.inputs)
    program = replace(program, inputs=inputs, setting=Setting(settings.ansi), climb_limit=settings.climb_limit)
    try:
        plan, stages = compile_stages(program, settings.broadcast_max_bytes)
    except (VerificationError, UnsupportedError) as problem:
        raise located(problem, resolved) from None
    from mpi_backend.codegen.portable import unportable  # noqa: PLC0415 - Spark needs none of it

    what = unportable(plan, inputs=True)
    if what is not None:
        raise UnsupportedError(
            "PARALAGG_NOT_PORTABLE",
            f"outside of Spark nobody can compute {what}",
            value=what,
            hint="--backend spark runs any deterministic expression",
        )
    return plan, (show_program(program), stage_changes(stages), plan.to_json())


def _computed(  # noqa: PLR0913, PLR0917 - what a run has come to by now
    task: Task,
    settings: Settings,
    resolved: Resolved,
    plan: Plan,
    given: Mapping[str, list[Given]],
    progress: Progress,
) -> Found:
    names, request = task.wanted.names, settings.request
    sources = dict(_sources(resolved, plan, given))
    rate = Rate()

    def hear(told: RunProgress) -> None:
        progress.on(told.name)
        progress.show(rate.told(told))

    if task.options.backend == "local":
        return engine.run_here(plan, sources, names, hear, ansi=settings.ansi)
    with _folder(task.work, request.staging) as folder:
        how = {"ansi": settings.ansi, "sub_buckets": settings.sub_buckets}
        return engine.run_on_ranks(plan, sources, names, hear, request, folder, how)


def _sources(
    resolved: Resolved, plan: Plan, given: Mapping[str, list[Given]]
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """The rows of each source that the plan reads."""
    from mpi_backend.state.types import type_of  # noqa: PLC0415 - Spark needs none of it

    for n in sorted({i.source for i in plan.inputs if i.relation is None}):
        source = resolved.sources[n]
        types = {c.type: type_of(c.type).arrow for c in source.columns}
        yield n, tables.rows_of(source, given.get(source.relation, ()), resolved, types)


@contextmanager
def _folder(work: Path, staging: str | None) -> Iterator[Path]:
    """Where files for the ranks lie: where the run keeps its files, unless they need a place that machines share."""
    if staging is None:
        yield work
        return
    Path(staging).mkdir(mode=0o700, parents=True, exist_ok=True)
    with work_folder(staging) as folder:
        yield folder


def _report(  # noqa: PLR0913, PLR0917 - what a report is made of
    found: Found, resolved: Resolved, name: str, backend: str, reason: str, planned: float
) -> RunReport | None:
    """Of the recursion that ``name`` needs last."""
    names = recursion_of(resolved.program, name)
    if names is None:
        return None
    stratum = next(s for s in found.report["strata"] if names[0] in s["relations"])
    rounds = [r for r in found.report["per_iteration"] if r["relation"] in stratum["relations"]]
    told = {**stratum, "per_iteration": rounds, "ranks": found.report.get("ranks", ())}
    return RunReport.from_json(json.dumps({**told, "backend": backend, "reason": reason}), planned)


@contextmanager
def _errors_of_the_run() -> Iterator[None]:
    """What Spark would raise while it computes is told as the command tells it then."""
    try:
        yield
    except ParalaggError as problem:
        if problem.code == patterns.CODE and not isinstance(problem, UsageError):
            told = (problem.code, problem.message)
            raise FixpointError(*told, value=problem.value, place=problem.place, hint=problem.hint) from problem
        if not engine.is_of_the_run(problem):
            raise
        message = f"{problem.code}: {problem.message}"
        raise FixpointError("PARALAGG_RUN_FAILED", message, place=problem.place, hint=problem.hint) from problem
