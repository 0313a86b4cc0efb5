"""Run a task without Spark: compile the text to one Plan, read files as Arrow, call the engine of ``mpi_backend``."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_paralagg.api.datalog import located
from pyspark_paralagg.api.explain import explain_plan
from pyspark_paralagg.api.routes import table_with_traces
from pyspark_paralagg.command import engine, outputs, tables
from pyspark_paralagg.command.progress import Progress
from pyspark_paralagg.command.table_results import TableResult, decoded_table
from pyspark_paralagg.command.work import work_folder
from pyspark_paralagg.compile import compile_program, explain_texts
from pyspark_paralagg.compile.rewrite.pack import pack_all
from pyspark_paralagg.datalog.lower.requested import recursion_of, requested_program, result_name
from pyspark_paralagg.datalog.lower.terms import SYMBOL
from pyspark_paralagg.datalog.lower.unsigned import check_ansi
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import FixpointError, ParalaggError, UnsupportedError, UsageError, VerificationError
from pyspark_paralagg.program import patterns
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.functor_file import described
from pyspark_paralagg.program.sets import element_type, unpacked
from pyspark_paralagg.report.run_progress import Rate
from pyspark_paralagg.report.run_report import RunReport
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.ranks import check

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from mpi_backend.launch.preflight import Request
    from pyspark_paralagg.command.engine import EngineResult
    from pyspark_paralagg.command.tables import OpenInput
    from pyspark_paralagg.command.task import Options, Task
    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.program.program import Program
    from pyspark_paralagg.report.run_progress import RunProgress

_ANSI = "spark.sql.ansi.enabled"
_PLACEMENT = {
    "sub_buckets": conf.SUB_BUCKETS,
    "sub_bucket_rounds": conf.SUB_BUCKET_ROUNDS,
    "split_ratio": conf.SUB_BUCKET_SPLIT,
    "merge_share": conf.SUB_BUCKET_MERGE,
    "heavy_parts": conf.HEAVY_PARTS,
    "roll_over_rows": conf.ROLL_OVER_ROWS,
}
"""The keys that say where ranks have their rows, by the name of the engine's setting."""
_KEYS = {
    k.name: k
    for k in (
        conf.MPI_LAUNCHER,
        conf.MPI_RANKS,
        conf.MPI_STAGING_DIR,
        conf.MPI_OVERSUBSCRIBE,
        conf.BROADCAST_MAX_BYTES,
        conf.CLIMB_MAX_ITERATIONS,
        *_PLACEMENT.values(),
    )
}


@dataclass(frozen=True)
class Settings:
    """The settings from ``--conf`` and other options for a run without Spark."""

    ansi: bool
    broadcast_max_bytes: int
    climb_limit: int
    placement: Mapping[str, object]
    request: Request

    @classmethod
    def from_options(cls, options: Options) -> Settings:
        """Read the settings; raise ``UsageError`` ``PARALAGG_BAD_CONF`` for a key of Spark's or a wrong value."""
        from mpi_backend.launch.preflight import Places, Request  # noqa: PLC0415 - not needed on Spark
        from mpi_backend.machine import available_cores  # noqa: PLC0415 - not needed on Spark

        confs = dict(options.confs)
        for key, value in confs.items():
            if key not in _KEYS and key != _ANSI:
                message = f"--backend {options.backend} runs without Spark and does not use {key}"
                hint = f"use one of {', '.join(sorted([*_KEYS, _ANSI]))}"
                raise UsageError("PARALAGG_BAD_CONF", message, value=value, place="--conf", hint=hint)
        values = {name: conf.parse(key, confs.get(name), "--conf") for name, key in _KEYS.items()}
        is_local = options.backend == "local"
        are_ranks_from_conf = options.ranks is None
        places = Places(*(f"--conf {name}" for name in Places()))
        request = Request(
            launcher="local" if is_local else values[conf.MPI_LAUNCHER.name],
            ranks=1 if is_local else options.ranks or values[conf.MPI_RANKS.name] or available_cores(),
            oversubscribe=values[conf.MPI_OVERSUBSCRIBE.name],
            staging=values[conf.MPI_STAGING_DIR.name],
            places=places if are_ranks_from_conf else places._replace(ranks="--ranks"),
        )
        ansi = conf.parse(replace(conf.MPI_FALLBACK, name=_ANSI, default=True), confs.get(_ANSI), "--conf")
        return cls(
            ansi,
            values[conf.BROADCAST_MAX_BYTES.name],
            values[conf.CLIMB_MAX_ITERATIONS.name],
            {option: values[key.name] for option, key in _PLACEMENT.items()},
            request,
        )


def run(task: Task, fallback_reason: str | None = None) -> None:
    """Run or explain the program; ``fallback_reason`` is set if the user did not request this backend."""
    backend = str(task.options.backend)
    settings = Settings.from_options(task.options)
    for rows in task.deltas:
        raise tables.needs_spark(str(rows.path))
    check(settings.request)
    with Progress(sys.stderr, is_quiet=task.options.is_quiet) as progress:
        if fallback_reason is not None:
            progress.write_line(f"{fallback_reason}: the recursion runs in this process, as with --backend {backend}")
        start = time.perf_counter()
        inputs = tables.open_inputs(task.inputs)
        columns = {name: files[0].columns for name, files in inputs.items()}
        resolved = resolve_text(task.text, columns, functions=task.functions)
        check_ansi(resolved, ansi=settings.ansi)
        program, plan = _compile(task, settings, resolved, inputs)
        reason = fallback_reason or f"requested by --backend {backend}"
        if task.options.explain:
            part = task.options.explain
            texts = explain_texts(program, settings.broadcast_max_bytes)
            explanation = explain_plan(part, *texts, plan.to_json(), (backend, reason))
            outputs.print_explained(task.requested.names, explanation, part)
            return
        planned = time.perf_counter() - start
        with _convert_run_errors():
            result = _compute(task, settings, resolved, plan, inputs, progress)
            results = {}
            for name in task.requested.names:
                report = _report(result, resolved, name, backend, reason, planned)
                table = _with_sets(
                    _text_columns(result.tables[result_name(resolved.program, name)], resolved, name), resolved, name
                )
                encoded = TableResult(table, report)
                results[name] = TableResult(decoded_table(table, task.text, name), report, encoded)
            outputs.write_all(task, results, progress)


def _compile(
    task: Task, settings: Settings, resolved: Resolved, open_inputs: Mapping[str, list[OpenInput]]
) -> tuple[Program, Plan]:
    """Return the Program of the text and its Plan."""
    try:
        program = replace(requested_program(resolved, task.requested.names), mode=task.options.mode)
    except UsageError as problem:  # a path that no rule gives
        raise located(problem, resolved) from None
    sizes = {
        n: sum(i.size_bytes for i in open_inputs.get(source.relation, ())) for n, source in enumerate(resolved.sources)
    }
    inputs = tuple(replace(i, size_bytes=sizes.get(i.source)) for i in program.inputs)
    program = replace(program, inputs=inputs, setting=Setting(settings.ansi), climb_limit=settings.climb_limit)
    if any(d.custom is not None for r in program.relations for d in r.dependents):
        program = pack_all(program)  # the engine has texts of sets, and no arrays
    try:
        plan = compile_program(program, settings.broadcast_max_bytes)
    except (VerificationError, UnsupportedError) as problem:
        raise located(problem, resolved) from None
    from mpi_backend.codegen.portable import check_portable  # noqa: PLC0415 - not needed on Spark

    check_portable(plan, hint="use --backend spark, which runs any deterministic expression", inputs=True)
    return program, plan


def _compute(  # noqa: PLR0913, PLR0917 - all results of the steps before
    task: Task,
    settings: Settings,
    resolved: Resolved,
    plan: Plan,
    open_inputs: Mapping[str, list[OpenInput]],
    progress: Progress,
) -> EngineResult:
    names, request = [result_name(resolved.program, name) for name in task.requested.names], settings.request
    sources = dict(sources_of(resolved, plan, open_inputs))
    counted = [name for name in task.requested.counted if name in names]
    rate = Rate()

    def show(run: RunProgress) -> None:
        progress.start_relation(run.name)
        progress.show(rate.describe(run))

    if task.options.backend == "local":
        return engine.run_in_process(plan, sources, names, show, ansi=settings.ansi, counted=counted)
    with _folder(task.work, request.staging) as folder:
        engine_settings = {
            "ansi": settings.ansi,
            **settings.placement,
            "counted": counted,
        }
        if plan.functors and task.options.functors is not None:
            engine_settings["functors"] = described(plan.functors, task.options.functors)
        return engine.run_on_ranks(plan, sources, names, show, request, folder, engine_settings)


def sources_of(
    resolved: Resolved, plan: Plan, open_inputs: Mapping[str, list[OpenInput]]
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Yield each source that the plan reads, with its rows."""
    from mpi_backend.state.types import type_of  # noqa: PLC0415 - not needed on Spark

    for n in sorted({i.source for i in plan.inputs if i.relation is None}):
        source = resolved.sources[n]
        types = {c.type: type_of(SYMBOL if element_type(c.type) else c.type).arrow for c in source.columns}
        yield n, tables.source_batches(source, open_inputs.get(source.relation, ()), resolved, types)


@contextmanager
def _folder(work: Path, staging: str | None) -> Iterator[Path]:
    """Yield the folder for the ranks' files: ``work``, or a new folder in ``staging``, which the machines share."""
    if staging is None:
        yield work
        return
    Path(staging).mkdir(mode=0o700, parents=True, exist_ok=True)
    with work_folder(staging) as folder:
        yield folder


def _text_columns(table: pa.Table, resolved: Resolved, name: str) -> pa.Table:
    """Return the columns of a relation in the text's order, from the rows of ``result_name``."""
    columns = list(resolved.names(name))
    if result_name(resolved.program, name) == name:
        return table.select(columns)
    return table_with_traces(table, resolved.program.relation(name), columns)


def _with_sets(table: pa.Table, resolved: Resolved, name: str) -> pa.Table:
    """Return the rows of a relation with arrays in place of the texts of sets."""
    import pyarrow as pa  # noqa: PLC0415 - slow to load

    from mpi_backend.state.types import type_of  # noqa: PLC0415 - not needed on Spark

    relation = next((r for r in resolved.program.relations if r.name == name), None)
    for column in () if relation is None else relation.columns:
        element = element_type(column.type)
        if element is not None:
            texts = table.column(column.name).to_pylist()
            sets = [None if t is None else unpacked(t, element) for t in texts]
            array = pa.chunked_array([sets], pa.list_(type_of(element).arrow))
            table = table.set_column(table.schema.get_field_index(column.name), column.name, array)
    return table


def _report(  # noqa: PLR0913, PLR0917 - the parts of a report
    result: EngineResult, resolved: Resolved, name: str, backend: str, reason: str, planned: float
) -> RunReport | None:
    """Return the report of the last recursion that ``name`` needs; None if it needs none."""
    names = recursion_of(resolved.program, name)
    if names is None:
        return None
    computed = {names[0], result_name(resolved.program, names[0])}
    stratum = next(s for s in result.report["strata"] if computed & {*s["relations"]})
    rounds = [r for r in result.report["per_iteration"] if r["relation"] in stratum["relations"]]
    content = {**stratum, "per_iteration": rounds, "ranks": result.report.get("ranks", ())}
    return RunReport.from_json(json.dumps({**content, "backend": backend, "reason": reason}), planned)


@contextmanager
def _convert_run_errors() -> Iterator[None]:
    """Convert errors that Spark would raise at run time to the errors that a run on Spark raises."""
    try:
        yield
    except ParalaggError as problem:
        if problem.code == patterns.CODE and not isinstance(problem, UsageError):
            message, value = problem.message, problem.value
            raise FixpointError(problem.code, message, value=value, place=problem.place, hint=problem.hint) from problem
        if not engine.is_run_error(problem):
            raise
        message = f"{problem.code}: {problem.message}"
        raise FixpointError("PARALAGG_RUN_FAILED", message, place=problem.place, hint=problem.hint) from problem
