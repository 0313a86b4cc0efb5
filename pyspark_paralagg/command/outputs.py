"""All outputs of a run: each beside its place, then what is printed, then all is moved."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

from pyspark_paralagg.command import results
from pyspark_paralagg.datalog.resolve.shapes import HOLDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark_paralagg.command.progress import Progress
    from pyspark_paralagg.command.results import Result
    from pyspark_paralagg.command.task import Task


def write_all(task: Task, found: Mapping[str, Result], progress: Progress) -> None:
    """Writes, prints and reports ``found``, the relations that ``task`` wants."""
    counts: dict[str, int] = {}
    wanted = task.wanted
    printed = task.work / "stdout"
    with printed.open("wb") as stdout:
        for rows in wanted.rows:
            started = time.perf_counter()
            name, result = rows.relation, found[rows.relation]
            # Declared without columns: it holds or does not.
            is_nullary = (
                rows.format == "text" and not task.types.get(name) and [*result.columns] == [(HOLDS, "boolean")]
            )
            progress.on(name)
            if rows in wanted.staged:
                staged = wanted.staged[rows]
                counts[name] = results.write(result, rows, staged, task.staging, is_nullary=is_nullary)
            else:
                counts[name] = results.write_framed(result, rows, stdout, is_nullary=is_nullary)
            progress.say(_summary(name, counts[name], time.perf_counter() - started, result))
        for name in wanted.sizes:
            if name not in counts:
                progress.on(name)
                counts[name] = found[name].count()
            stdout.write(f"{name}\t{counts[name]}\n".encode())
    if wanted.report is not None:
        reports = {name: result.report for name, result in found.items()}
        told = {name: None if r is None else json.loads(r.to_json()) for name, r in reports.items()}
        wanted.report.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    _print(printed)
    task.staging.commit()


def _print(file: Path) -> None:
    """Before anything is moved, so that an interrupt that ends this leaves nothing."""
    sys.stdout.flush()
    try:
        with file.open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads it has seen enough, as in `| head`; the files are written nonetheless
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _summary(name: str, count: int, seconds: float, result: Result) -> str:
    ran = result.report
    how = f", {ran.iterations:,} iterations by {ran.backend}" if ran else ""
    return f"{name}: {count:,} rows{how}, {seconds:.1f} s"


def print_explained(names: Sequence[str], told: str, part: str) -> None:
    """The explanation of these relations; ``part`` is its format."""
    comment = {"mermaid": "%% {}", "html": "<!-- {} -->"}.get(part, "-- {}")
    sys.stdout.write(f"{comment.format(', '.join(names))}\n{told}\n")
