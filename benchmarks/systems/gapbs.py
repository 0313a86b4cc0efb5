"""GAPBS, whose sources (github.com/sbeamer/gapbs) someone has put into `.bench/gapbs`; compiled there on first use.

It reads text: the graph is written so once, beside the others, with vertices numbered in the order of their ids.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.datasets import DEFAULT_CACHE, PROJECT, GraphAbsentError
from benchmarks.systems import Answer
from benchmarks.systems.dense_ids import read_dense

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.datasets import Graph

_SOURCES = DEFAULT_CACHE / "gapbs" / "src"
_DRIVER = PROJECT / "benchmarks" / "gapbs" / "answers.cc"
_DELTA = {"rmat": 2, "grid": 64}
"""Of delta-stepping: the best of 1, 2, 4, ... on these graphs."""


def _compiled(query: str) -> Path:
    if not _SOURCES.is_dir():
        raise GraphAbsentError(f"GAPBS is absent: git clone https://github.com/sbeamer/gapbs {_SOURCES.parent}")
    made = DEFAULT_CACHE / f"gapbs-{query}"
    if not made.exists() or made.stat().st_mtime < _DRIVER.stat().st_mtime:
        flags = ["-std=c++11", "-O3", "-fopenmp", f"-D{'SSSP' if query == 'sssp' else 'CC'}", f"-I{_SOURCES}"]
        subprocess.run(["g++", *flags, str(_DRIVER), "-o", str(made)], check=True)  # noqa: S603, S607 - ours
    return made


class Gapbs:
    """No state: every run reads its file again."""

    version = "GAPBS, g++ -O3"

    def answer(self, query: str, graph: Graph) -> Answer:
        """Read the text, build, run; the loop is the algorithm alone, as GAPBS times it."""
        dense = read_dense(graph)
        file = graph.directory / ("edges.wel" if query == "sssp" else "edges.el")
        if not file.exists():
            columns = [dense.src, dense.dst, dense.weight][: 3 if query == "sssp" else 2]
            np.savetxt(file, np.stack(columns, axis=1), "%d")
        labels = graph.directory / "labels"
        kind = graph.name.partition("-")[0]
        asked = ["-f", str(file), "-r", str(dense.source), "-d", str(_DELTA.get(kind, 1))]
        told = subprocess.run(  # noqa: S603 - what was compiled above
            [str(_compiled(query)), *(asked if query == "sssp" else ["-s", "-f", str(file)])],
            env={**os.environ, "OMP_NUM_THREADS": "1", "LABELS": str(labels)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        seconds, rows, total = next(line for line in told.splitlines() if line.startswith("answer")).split()[1:]
        if query == "sssp":
            return Answer((int(rows), int(total)), float(seconds), {})
        return Answer(
            (len(dense.vertices), int(dense.vertices[np.fromfile(labels, np.int64)].sum())), float(seconds), {}
        )


def start(_name: str, _memory: str) -> Gapbs:
    """Nothing to set up."""
    return Gapbs()
