"""Write all outputs of a run: files under staged names, then standard output, then move the files to their places."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

from pyspark_paralagg.command import results
from pyspark_paralagg.command.ending import repeat_swallowed_signal
from pyspark_paralagg.datalog.resolve.shapes import HOLDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark_paralagg.command.progress import Progress
    from pyspark_paralagg.command.results import Result
    from pyspark_paralagg.command.task import Task


def write_all(task: Task, relations: Mapping[str, Result], progress: Progress) -> None:
    """Write, print and report ``relations``, the results that ``task`` requests."""
    counts: dict[str, int] = {}
    requested = task.requested
    printed = task.work / "stdout"
    with printed.open("wb") as stdout:
        for rows in requested.rows:
            started = time.perf_counter()
            name, result = rows.relation, relations[rows.relation]
            # A relation declared without columns either holds or does not.
            is_nullary = (
                rows.format in ("text", "json")
                and not task.types.get(name)
                and [*result.columns] == [(HOLDS, "boolean")]
            )
            progress.start_relation(name)
            if rows in requested.staged:
                staged = requested.staged[rows]
                counts[name] = results.write(result, rows, staged, task.staging, task.text, is_nullary=is_nullary)
            elif rows.format == "json":
                counts[name] = results.write_json(result, rows, stdout, task.text, is_nullary=is_nullary)
            else:
                counts[name] = results.write_framed(result, rows, stdout, is_nullary=is_nullary)
            progress.write_line(_summary(name, counts[name], time.perf_counter() - started, result))
        for name in requested.sizes:
            if name not in counts:
                progress.start_relation(name)
                counts[name] = relations[name].count()
            stdout.write(f"{name}\t{counts[name]}\n".encode())
    if requested.report is not None:
        reports = {name: result.report for name, result in relations.items()}
        report_json = {name: None if r is None else json.loads(r.to_json()) for name, r in reports.items()}
        requested.report.write_text(json.dumps(report_json, indent=1) + "\n", encoding="utf-8")
    repeat_swallowed_signal()
    _print(printed)
    task.staging.commit()


def _print(file: Path) -> None:
    """Copy ``file`` to standard output; ``write_all`` does it before moving files, so an interrupt leaves none."""
    sys.stdout.flush()
    try:
        with file.open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe, as in `| head`; the files are still written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _summary(name: str, count: int, seconds: float, result: Result) -> str:
    report = result.report
    details = f", {report.iterations:,} iterations by {report.backend}" if report else ""
    return f"{name}: {count:,} rows{details}, {seconds:.1f} s"


def print_explained(names: Sequence[str], explanation: str, part: str) -> None:
    """Print the explanation of these relations; ``part`` is its format."""
    comment = {"mermaid": "%% {}", "html": "<!-- {} -->"}.get(part, "-- {}")
    sys.stdout.write(f"{comment.format(', '.join(names))}\n{explanation}\n")
