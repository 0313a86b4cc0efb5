"""The balance of work on graphs with hubs: ``python -m benchmarks.balance --backend mpi --tasks 2,4,5``.

Graphs: a star whose hub has all edges out of it, one with all edges into it, and one with both; every leaf also has
edges to two other leaves. For shortest paths and components the table has the edges visited by the heaviest rank
or task, divided by the average, and the seconds of the loop: with the edges of hubs spread, and without.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from benchmarks.generators import Longs

LEAVES = 1 << 20
_DECLARED = """\
.decl edge(x: number, y: number, w: number)
.decl start(x: number)
.decl vertex(x: number)
.decl found(x: number, v: number)
.input edge(filename="edge.parquet")
.input start(filename="start.parquet")
.input vertex(filename="vertex.parquet")
.output found
"""
QUERIES = {
    "shortest paths": "found(x, $MIN(0)) :- start(x). found(y, $MIN(v + w)) :- found(x, v), edge(x, y, w).",
    "components": "found(x, $MIN(x)) :- vertex(x). found(y, $MIN(v)) :- found(x, v), edge(x, y, _). "
    "found(x, $MIN(v)) :- found(y, v), edge(x, y, _).",
}


def stars(leaves: int) -> dict[str, tuple[Longs, Longs]]:
    """Return sources and targets of the stars' edges; the hub is the vertex 7, and paths begin there or at a leaf."""
    rng = np.random.default_rng(0)
    leaf = 8 + np.arange(leaves)
    hub = np.full(leaves, 7)
    sources, targets = np.tile(leaf, 2), rng.integers(8, 8 + leaves, 2 * leaves)
    return {
        "out-star": (np.concatenate([hub, sources]), np.concatenate([leaf, targets])),
        "in-star": (np.concatenate([leaf, sources]), np.concatenate([hub, targets])),
        "both": (np.concatenate([hub, leaf, sources]), np.concatenate([leaf, hub, targets])),
    }


def write(folder: Path, src: Longs, dst: Longs) -> None:
    """Write the files that the queries read."""
    weights = np.random.default_rng(1).integers(1, 100, len(src))
    pq.write_table(pa.table({"x": src, "y": dst, "w": weights}), folder / "edge.parquet")
    pq.write_table(pa.table({"x": np.unique(np.concatenate([src, dst]))}), folder / "vertex.parquet")
    pq.write_table(pa.table({"x": src[:1]}), folder / "start.parquet")


def measure(folder: Path, query: str, backend: str, tasks: int, heavy_parts: int) -> tuple[float, float, str]:
    """Run a query on ranks or in tasks of Spark. Return the balance of its work, the seconds of its loop, its form."""
    (folder / "query.dl").write_text(_DECLARED + QUERIES[query])
    report = folder / "report.json"
    command = [sys.executable, "-m", "pyspark_paralagg", "run", str(folder / "query.dl"), "--facts", str(folder)]
    command += ["--out", str(folder / "out"), "--format", "parquet", "--quiet", "--report", str(report)]
    confs = {"spark.paralagg.heavyParts": heavy_parts}
    if backend == "mpi":
        command += ["--ranks", str(tasks)]
        confs["spark.paralagg.mpi.oversubscribe"] = "true"
    else:
        command += ["--master", f"local[{tasks}]"]
        confs |= {"spark.sql.shuffle.partitions": tasks, "spark.paralagg.oneTask.maxRows": 0}
    command += [word for key, value in confs.items() for word in ("--conf", f"{key}={value}")]
    subprocess.run([*command, "--backend", backend], check=True)  # noqa: S603
    found = json.loads(report.read_text())["found"]
    return found["work_balance"], found["seconds"]["loop"], found["form"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=("mpi", "spark"), default="mpi")
    parser.add_argument("--tasks", default="2,4,5", help="numbers of ranks or tasks")
    parser.add_argument("--leaves", type=int, default=LEAVES)
    options = parser.parse_args()
    print("| query | graph | tasks | max / avg of edges: hubs whole | spread | loop, s: whole | spread | form |")
    print("|---|---|--:|--:|--:|--:|--:|---|")
    for graph, (src, dst) in stars(options.leaves).items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, src, dst)
            for query in QUERIES:
                for tasks in map(int, options.tasks.split(",")):
                    whole, spread = (measure(folder, query, options.backend, tasks, parts) for parts in (0, 8))
                    balances, seconds = f"{whole[0]:.2f} | {spread[0]:.2f}", f"{whole[1]:.3f} | {spread[1]:.3f}"
                    print(f"| {query} | {graph} | {tasks} | {balances} | {seconds} | {spread[2]} |", flush=True)


if __name__ == "__main__":
    main()
