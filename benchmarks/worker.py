"""One system, one query, one graph, in a process of its own: asks it several times and writes what it saw as JSON.

Started by `runner` as `python -m benchmarks.worker`; the first run of a session warms it up (JIT, page cache), the
last is the one that counts.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import process_tree
from benchmarks.datasets import open_graph
from benchmarks.systems import SYSTEMS


@dataclass(frozen=True)
class Task:
    """What a worker is to do; travels as JSON on the command line."""

    system: str
    query: str
    graph: str
    cache: str
    runs: int
    memory: str
    output: str


@dataclass
class Run:
    """One run, in seconds; `whole` goes from the Parquet files to the checksum."""

    whole: float
    loop: float | None
    checksum: list[float]
    facts: dict[str, Any] = field(default_factory=dict)


def work(task: Task) -> dict[str, Any]:
    """Do the task and return {"version": ..., "before_mb": resident before the first run, "runs": [...]}."""
    graph = open_graph(task.graph, Path(task.cache))
    session = SYSTEMS[task.system].start(task.memory)
    before, _ = process_tree.resident_megabytes(os.getsid(0))
    runs = []
    for _ in range(task.runs):
        start = perf_counter()
        answer = session.answer(task.query, graph)
        runs.append(Run(perf_counter() - start, answer.loop, list(answer.checksum), answer.facts))
    return {"version": session.version, "before_mb": before, "runs": [asdict(run) for run in runs]}


if __name__ == "__main__":
    task = Task(**json.loads(sys.argv[1]))
    Path(task.output).write_text(json.dumps(work(task)))
