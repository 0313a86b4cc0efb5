"""Run the steps of `paralagg run` in order.

Text -> directives -> examined files -> executor (Spark, or the engine of ``mpi_backend``) -> relations -> staged
results -> final files. Errors of the program or its files are raised before Spark starts, unless only Spark can detect
them.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.api.datalog import verify
from pyspark_paralagg.api.explain import formats
from pyspark_paralagg.command import directives, facts
from pyspark_paralagg.command.failure import interruption
from pyspark_paralagg.command.preprocess import source_of
from pyspark_paralagg.command.staging import Staging
from pyspark_paralagg.command.task import Options, RequestedOutputs, Task
from pyspark_paralagg.command.work import work_folder
from pyspark_paralagg.datalog.parse.syntax import Declaration, Directive, Functor
from pyspark_paralagg.datalog.read import read
from pyspark_paralagg.datalog.resolve.faults import with_all_problems
from pyspark_paralagg.datalog.resolve.types import declared_types, unsigned_columns
from pyspark_paralagg.datalog.text_to_program import resolve_once
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.functor_file import functions_in

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark_paralagg.datalog.parse.syntax import Text
    from pyspark_paralagg.datalog.resolve.functors import Functions

STANDALONE = ("local", "mpi")
"""The backends that need no Spark."""


def run(options: Options) -> None:
    """Run a program, or explain it; if it raises, the output folder is unchanged."""
    if options.explain and options.explain not in formats():
        message = f"--explain has no format {options.explain!r}"
        hint = f"use one of {', '.join(formats())}"
        raise UsageError("PARALAGG_BAD_OPTION", message, value=options.explain, place="--explain", hint=hint)
    text = read(source_of(options.program, uses_cpp=options.uses_cpp), str(options.program))
    declared = [c.name for c in text.clauses if isinstance(c, Functor)]
    functions = {} if options.functors is None else functions_in(options.functors, declared)
    _check(options, text, functions)
    requested = RequestedOutputs(directives.outputs(text, options.out, options.format), directives.printed_sizes(text))
    if not requested.names:
        hint = "add .output with the name of a relation"
        raise UsageError("PARALAGG_NO_OUTPUT", "the program has no output", place=text.name, hint=hint)
    if not options.facts.is_dir():
        hint = "set --facts to the folder of the .input files"
        message = f"the folder {options.facts} does not exist"
        raise UsageError("PARALAGG_INPUT_MISSING", message, value=str(options.facts), hint=hint)
    staging = Staging()
    try:
        with work_folder() as work, staging:
            _run(options, text, requested, work, staging, functions)
    except BaseException as problem:
        if not (staging.is_committed and interruption(problem)):  # an interrupt after the commit has no effect
            raise


def _run(  # noqa: PLR0913, PLR0917 - the parts of a task
    options: Options, text: Text, requested: RequestedOutputs, work: Path, staging: Staging, functions: Functions
) -> None:
    inputs = directives.inputs(text, options.facts)
    types = declared_types(text)
    input_files = facts.examine(text, inputs, types, unsigned_columns(text))
    if not (options.explain or options.why or options.why_not):
        requested = requested.placed(staging, options.report)
    task = Task(options, text, requested, types, input_files, work, staging, functions)
    if options.why or options.why_not:
        from pyspark_paralagg.command import question  # noqa: PLC0415 - only these options need it

        question.run(replace(task, options=replace(options, backend="local")))
    elif options.backend in STANDALONE:
        _run_standalone(task)
    elif options.backend in (None, "auto") and not has_pyspark():
        _run_standalone(replace(task, options=replace(options, backend="local")), "pyspark is not installed")
    else:
        from pyspark_paralagg.command import on_spark  # noqa: PLC0415 - other backends do not need it

        on_spark.run(task)


def _check(options: Options, text: Text, functions: Functions) -> None:
    """Raise the problems of the text before any file is read, if the text declares all inputs."""
    names = {c.relation for c in text.clauses if isinstance(c, Directive) and c.kind == "input"}

    def check(part: Text) -> None:
        types = declared_types(part)
        resolved = resolve_once(part, {n: types[n] for n in names & types.keys()}, functions=functions)
        if options.mode == "auto" and options.backend != "dataframe":
            verify(resolved)

    if names <= {c.relation for c in text.clauses if isinstance(c, Declaration)}:  # else only the files have the types
        with_all_problems(text, check)


def _run_standalone(task: Task, fallback_reason: str | None = None) -> None:
    from pyspark_paralagg.command import standalone  # noqa: PLC0415 - the Spark backend does not need it

    standalone.run(task, fallback_reason)


def has_pyspark() -> bool:
    """Return whether pyspark is installed."""
    return importlib.util.find_spec("pyspark") is not None
