"""Sub-buckets on closures of trees: ``python -m benchmarks.sub_buckets --tasks 2,4,5``.

The case of Load-Balancing Parallel Relational Algebra, section 4 (figure 10): the closure ``p(x, z) :- p(x, y), edge(y,
z)`` of a tree whose edges lead to the root (up) or away from it (down); rows lie by ``y``. Trees: a balanced binary
one, and a skewed one, where the parent of a vertex is drawn so that few vertices have most children. The table has the
rows read (work) and the changed rows of the heaviest rank, divided by the average, the bytes sent and the seconds of
the loop: without sub-buckets, with a fixed number, and with ``auto``.
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
    from typing import Any

    from benchmarks.generators import Longs

TEXT = """\
.decl edge(x: number, y: number)
.decl p(x: number, y: number)
.input edge(filename="edge.parquet")
.output p
p(x, y) :- edge(x, y).
p(x, z) :- p(x, y), edge(y, z).
"""
SKEW = 2.5


def trees(vertices: int) -> dict[str, tuple[Longs, Longs]]:
    """Return children and parents. Vertices are numbered anew, so that their hashes say nothing of their depth."""
    rng = np.random.default_rng(3)
    child = np.arange(1, vertices)
    names = rng.permutation(vertices)
    skewed = (child * rng.random(vertices - 1) ** SKEW).astype(np.int64)
    return {"binary": (names[child], names[(child - 1) // 2]), "skewed": (names[child], names[skewed])}


def measure(folder: Path, tasks: int, confs: dict[str, object], text: str = TEXT) -> dict[str, Any]:
    """Run the closure on ranks. Return its report."""
    report = folder / "report.json"
    (folder / "query.dl").write_text(text)
    command = [sys.executable, "-m", "pyspark_paralagg", "run", str(folder / "query.dl"), "--facts", str(folder)]
    command += ["--out", str(folder / "out"), "--format", "parquet", "--quiet", "--report", str(report)]
    # Edges on every rank would need no exchange at all, and no sub-buckets.
    fixed = {"spark.paralagg.mpi.oversubscribe": "true", "spark.paralagg.broadcast.maxBytes": 0}
    command += [word for key, value in (fixed | confs).items() for word in ("--conf", f"{key}={value}")]
    subprocess.run([*command, "--backend", "mpi", "--ranks", str(tasks)], check=True)  # noqa: S603
    result: dict[str, Any] = json.loads(report.read_text())["p"]
    return result


def write(folder: Path, sources: Longs, targets: Longs) -> None:
    """Write the file of edges."""
    pq.write_table(pa.table({"x": sources, "y": targets}), folder / "edge.parquet")


def row(report: dict[str, Any]) -> str:
    """Return the cells of a report: the balances of work and of changed rows, megabytes, seconds, form."""
    changed = [(i["balance"], i["delta"]) for i in report["per_iteration"] if i["delta"]]
    balance = sum(b * d for b, d in changed) / sum(d for _, d in changed)
    sent = sum(i["bytes"] for i in report["per_iteration"]) / 1e6
    numbers = f"{report['work_balance']:.2f} | {balance:.2f} | {sent:.1f} | {report['seconds']['loop']:.2f}"
    return f"{numbers} | {report['form']}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="2,4,5", help="numbers of ranks")
    parser.add_argument("--vertices", type=int, default=1 << 17)
    parser.add_argument("--rounds", type=int, default=2, help="iterations between two changes of the map")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each case, of which the fastest counts")
    options = parser.parse_args()
    rounds = {"spark.paralagg.subBuckets": "auto", "spark.paralagg.subBuckets.rounds": options.rounds}
    forms: dict[str, dict[str, object]] = {"1": {}, "fixed": {}, "auto": rounds}
    print(
        "| tree | edges | ranks | sub-buckets | work, max / avg | changed rows, max / avg | MB sent | loop, s | form |"
    )
    print("|---|---|--:|---|--:|--:|--:|--:|---|")
    for tree, (child, parent) in trees(options.vertices).items():
        for direction, edges in (("up", (child, parent)), ("down", (parent, child))):
            with tempfile.TemporaryDirectory() as name:
                write(Path(name), *edges)
                for tasks in map(int, options.tasks.split(",")):
                    for form, confs in forms.items():
                        number = {"spark.paralagg.subBuckets": tasks} if form == "fixed" else {}
                        reports = [measure(Path(name), tasks, confs | number) for _ in range(options.repeat)]
                        best = min(reports, key=lambda r: r["seconds"]["loop"])
                        label = tasks if form == "fixed" else form
                        print(f"| {tree} | {direction} | {tasks} | {label} | {row(best)} |", flush=True)


if __name__ == "__main__":
    main()
