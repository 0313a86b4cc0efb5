"""`paralagg run`: the order of things, and nothing else.

Text -> directives -> files are checked -> Spark starts -> relations -> results beside their places -> all is moved.
What is wrong with the program or its files is told before Spark starts, where that needs no Spark.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_paralagg.command import directives, facts, results
from pyspark_paralagg.command.failure import as_fixpoint_errors, interruption
from pyspark_paralagg.command.progress import Progress
from pyspark_paralagg.command.staging import Staging
from pyspark_paralagg.command.started import session
from pyspark_paralagg.compile import STAGES
from pyspark_paralagg.datalog.api import datalog
from pyspark_paralagg.datalog.parse import parse
from pyspark_paralagg.datalog.resolve import resolve_text
from pyspark_paralagg.datalog.shapes import HOLDS
from pyspark_paralagg.datalog.types import declared_types, unsigned_columns
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.explain import explain
from pyspark_paralagg.report import report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from pyspark_paralagg.command.directives import Format, Rows
    from pyspark_paralagg.datalog.syntax import Text
    from pyspark_paralagg.program.program import Mode


PARTS = ("text", "mermaid", "program", *STAGES)
"""What ``explain`` knows."""


@dataclass(frozen=True)
class Options:
    """The command line. ``out`` None is standard output; ``explain`` is a format of ``explain``."""

    program: Path
    facts: Path
    out: Path | None
    format: Format = "text"
    backend: str | None = None
    mode: Mode = "auto"
    master: str = "local[*]"
    confs: tuple[tuple[str, str], ...] = ()
    explain: str | None = None
    report: Path | None = None
    is_quiet: bool = False
    shows_jvm: bool = False


@dataclass(frozen=True)
class _Wanted:
    """What is written, and of what the size is printed."""

    rows: tuple[Rows, ...]
    sizes: tuple[str, ...]
    staged: Mapping[Rows, Path] = field(default_factory=dict)
    report: Path | None = None

    @property
    def names(self) -> list[str]:
        """The relations."""
        return list(dict.fromkeys([*(rows.relation for rows in self.rows), *self.sizes]))

    def placed(self, staging: Staging, report_to: Path | None) -> _Wanted:
        """With the names to write to. What cannot be written is told here, before anything is computed."""
        staged = {r: staging.place(r.path, is_table=r.format == "delta") for r in self.rows if r.path is not None}
        return replace(self, staged=staged, report=None if report_to is None else staging.place(report_to))


def run(options: Options) -> None:
    """Run a program, or explain it. Raises what it raises; the output folder is as before then."""
    if options.explain and options.explain not in PARTS:
        message = f"there is nothing called {options.explain!r} to explain"
        hint = f"there are {', '.join(PARTS)}"
        raise UsageError("PARALAGG_BAD_OPTION", message, value=options.explain, place="--explain", hint=hint)
    text = _read(options.program)
    wanted = _Wanted(directives.outputs(text, options.out, options.format), directives.printed_sizes(text))
    if not wanted.names:
        hint = "add .output and the name of a relation"
        raise UsageError("PARALAGG_NO_OUTPUT", "the program asks for no output", place=text.name, hint=hint)
    if not options.facts.is_dir():
        hint = "--facts names the folder that files of .input lie in"
        message = f"there is no folder {options.facts}"
        raise UsageError("PARALAGG_INPUT_MISSING", message, value=str(options.facts), hint=hint)
    work = Path(tempfile.mkdtemp(prefix="paralagg-"))
    staging = Staging()
    try:
        with staging:
            _run(options, text, wanted, work, staging)
    except BaseException as problem:
        if not (staging.is_committed and interruption(problem)):  # else it came too late
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(options: Options, text: Text, wanted: _Wanted, work: Path, staging: Staging) -> None:
    inputs = directives.inputs(text, options.facts)
    types = declared_types(text)
    if all(rows.relation in types for rows in inputs):
        resolve_text(text, {rows.relation: types[rows.relation] for rows in inputs})  # what is wrong with the text
    examined = facts.examine(text, inputs, types, unsigned_columns(text), work)
    if not options.explain:
        wanted = wanted.placed(staging, options.report)
    uses_delta = any(rows.format == "delta" for rows in (*inputs, *wanted.rows))
    log = None if options.shows_jvm else work / "spark.log"
    with (
        session(options.program.name, options.master, dict(options.confs), log, uses_delta=uses_delta) as spark,
        Progress(sys.stderr, is_quiet=options.is_quiet) as progress,
    ):
        given = facts.load(spark, examined)
        relations = datalog(spark, text.source, given, name=text.name, backend=options.backend, mode=options.mode)
        progress.watch(spark)
        try:
            frames = {}
            for name in wanted.names:  # all of them first: what several outputs share runs once
                progress.on(name)
                with as_fixpoint_errors(name):
                    frames[name] = relations[name]
            if options.explain:
                _explain(frames, options.explain)
            else:
                _compute(frames, wanted, types, work, progress, staging)
        finally:
            relations.unpersist()


def _read(program: Path) -> Text:
    try:
        source = program.read_text(encoding="utf-8")
    except OSError as problem:
        message = f"cannot read {program}: {problem.strerror}"
        raise UsageError("PARALAGG_NO_PROGRAM", message, value=str(program)) from None
    except UnicodeDecodeError as problem:
        message = f"{program} is not UTF-8, at byte {problem.start}"
        raise UsageError("PARALAGG_NO_PROGRAM", message, value=str(program)) from None
    return parse(source, str(program))


def _compute(  # noqa: PLR0913, PLR0917 - what a run has come to by now
    frames: Mapping[str, DataFrame],
    wanted: _Wanted,
    types: Mapping[str, facts.Columns],
    work: Path,
    progress: Progress,
    staging: Staging,
) -> None:
    counts: dict[str, int] = {}
    printed = work / "stdout"
    with printed.open("wb") as stdout:
        for rows in wanted.rows:
            started = time.perf_counter()
            name, df = rows.relation, frames[rows.relation]
            if rows.format == "text" and not types.get(name) and df.dtypes == [(HOLDS, "boolean")]:
                df = df.select()  # declared without columns
            progress.on(name)
            with as_fixpoint_errors(name):
                if rows in wanted.staged:
                    counts[name] = results.write(df, rows, wanted.staged[rows], staging)
                else:
                    counts[name] = results.write_framed(df, rows, stdout)
            progress.say(_summary(name, counts[name], time.perf_counter() - started, frames[name]))
        for name in wanted.sizes:
            if name not in counts:
                progress.on(name)
                with as_fixpoint_errors(name):
                    counts[name] = frames[name].count()
            stdout.write(f"{name}\t{counts[name]}\n".encode())
    if wanted.report is not None:
        reports = {name: report(df) for name, df in frames.items()}
        told = {name: None if r is None else json.loads(r.to_json()) for name, r in reports.items()}
        wanted.report.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    _print(printed)
    staging.commit()


def _print(file: Path) -> None:
    """Before anything is moved, so that an interrupt that ends this leaves nothing."""
    sys.stdout.flush()
    try:
        with file.open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads it has seen enough, as in `| head`; the files are written nonetheless
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _summary(name: str, count: int, seconds: float, df: DataFrame) -> str:
    ran = report(df)
    how = f", {ran.iterations:,} iterations by {ran.backend}" if ran else ""
    return f"{name}: {count:,} rows{how}, {seconds:.1f} s"


def _explain(frames: Mapping[str, DataFrame], part: str) -> None:
    """Relations of one recursion are explained together."""
    names: dict[str, list[str]] = {}
    for name, df in frames.items():
        names.setdefault(explain(df, part), []).append(name)
    comment = "%%" if part == "mermaid" else "--"
    for told, of in names.items():
        sys.stdout.write(f"{comment} {', '.join(of)}\n{told}\n")
