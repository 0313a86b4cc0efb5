"""`paralagg run`: the order of things, and nothing else.

Text -> directives -> files are checked -> Spark starts -> relations -> results beside their places -> all is moved.
What is wrong with the program or its files is told before Spark starts, where that needs no Spark.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_paralagg.command import directives, facts, results
from pyspark_paralagg.command.progress import Progress
from pyspark_paralagg.command.staging import Staging
from pyspark_paralagg.command.started import session
from pyspark_paralagg.datalog.api import datalog
from pyspark_paralagg.datalog.parse import parse
from pyspark_paralagg.datalog.resolve import resolve_text
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

    @property
    def names(self) -> list[str]:
        """The relations."""
        return list(dict.fromkeys([*(rows.relation for rows in self.rows), *self.sizes]))


def run(options: Options) -> None:
    """Run a program, or explain it. Raises what it raises; the output folder is as before then."""
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
    try:
        inputs = directives.inputs(text, options.facts)
        types = declared_types(text)
        if all(rows.relation in types for rows in inputs):
            resolve_text(text, {rows.relation: types[rows.relation] for rows in inputs})  # what is wrong with the text
        examined = facts.examine(text, inputs, types, unsigned_columns(text), work)
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
                # All of them first: what several outputs share runs once.
                frames = {name: relations[name] for name in wanted.names}
                if options.explain:
                    _explain(frames, options.explain)
                else:
                    _compute(frames, wanted, options.report, work, progress)
            finally:
                relations.unpersist()
    finally:
        shutil.rmtree(work, ignore_errors=True)


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


def _compute(
    frames: Mapping[str, DataFrame],
    wanted: _Wanted,
    report_to: Path | None,
    work: Path,
    progress: Progress,
) -> None:
    counts: dict[str, int] = {}
    printed: list[Path] = []
    with Staging() as staging:
        for number, rows in enumerate(wanted.rows):
            started = time.perf_counter()
            name, df = rows.relation, frames[rows.relation]
            progress.on(name)
            if rows.path is None:
                printed.append(work / f"stdout-{number}")
                with printed[-1].open("wb") as file:
                    counts[name] = results.write_framed(df, rows, file)
            else:
                counts[name] = results.write(df, rows, rows.path, staging)
            progress.say(_summary(name, counts[name], time.perf_counter() - started, df))
        for name in wanted.sizes:
            if name not in counts:
                progress.on(name)
                counts[name] = frames[name].count()
        if report_to is not None:
            reports = {name: report(df) for name, df in frames.items()}
            told = {name: None if r is None else json.loads(r.to_json()) for name, r in reports.items()}
            staging.place(report_to).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        staging.commit()
    for path in printed:
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    for name in wanted.sizes:
        sys.stdout.write(f"{name}\t{counts[name]}\n")
    sys.stdout.flush()


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
