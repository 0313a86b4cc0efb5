"""Early exchanges on a bowtie: ``python -m benchmarks.roll_over --tasks 2,4 --width 4000 --limits 0,4000000,1000000``.

The graph of Load-Balancing Parallel Relational Algebra, section 4 (figures 7 and 12): ``width`` vertices on the left
lead to a chain, and this to as many on the right. One iteration of the closure then derives all ``width``² pairs, in
the rank that owns the chain's last vertex. The table has the peak memory of the heaviest and the lightest rank, the
bytes sent and the seconds of the loop. ``--memory`` limits the data segment of each process, in MB.

With ``--backend spark`` there is an executor of one core for each task, with a heap of ``--memory`` MB. Its peak is the
largest heap after a garbage collection.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.scale.graphs import make
from benchmarks.sub_buckets import measure, write

if TYPE_CHECKING:
    from typing import Any

    from benchmarks.generators import Longs

LENGTH = 3
_DECLARED = """\
.decl edge(x: number, y: number)
.decl p(x: number, y: number{value})
.input edge(filename="edge.parquet")
.output p
"""
_VALUE = ", v: number"
TEXTS = {
    "pairs": _DECLARED.format(value="") + "p(x, y) :- edge(x, y). p(x, z) :- p(x, y), edge(y, z).",
    "lengths": _DECLARED.format(value=_VALUE)
    + "p(x, y, $MIN(1)) :- edge(x, y). p(x, z, $MIN(v + 1)) :- p(x, y, v), edge(y, z).",
    "counts": _DECLARED.format(value=_VALUE)
    + "p(x, y, $SUM(1)) :- edge(x, y). p(x, z, $SUM(v)) :- p(x, y, v), edge(y, z).",
}


def bowtie(width: int, length: int = LENGTH) -> tuple[Longs, Longs]:
    """Return sources and targets. Vertices are numbered anew, so that their hashes say nothing of their places."""
    left, right = np.arange(width), width + np.arange(width)
    chain = 2 * width + np.arange(length)
    sources = np.concatenate([left, chain[:-1], np.full(width, chain[-1])])
    targets = np.concatenate([np.full(width, chain[0]), chain[1:], right])
    names = np.random.default_rng(1).permutation(2 * width + length)
    return names[sources], names[targets]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="2,4", help="numbers of ranks or tasks")
    parser.add_argument("--width", type=int, default=4000)
    parser.add_argument("--graph", help="a graph of the scale model instead of the bowtie, as rmat-11")
    parser.add_argument("--queries", default=",".join(TEXTS), help="of " + ", ".join(TEXTS))
    parser.add_argument("--limits", default="0,4000000,1000000,100000", help="rows for others; 0: no early exchange")
    parser.add_argument("--memory", type=int, help="MB of data that a rank may have, or of an executor's heap (4096)")
    parser.add_argument("--backend", choices=("mpi", "spark"), default="mpi")
    options = parser.parse_args()
    heap = (options.memory or 4096) if options.backend == "spark" else None
    if options.memory is not None and heap is None:
        resource.setrlimit(resource.RLIMIT_DATA, (options.memory << 20, options.memory << 20))
    graph = None if options.graph is None else make(options.graph)
    # Ids that are far from one another have no tables by position, as those of a bowtie's pairs.
    edges = bowtie(options.width) if graph is None else (graph.src * 10**9, graph.dst * 10**9)
    print("| query | tasks | limit | early exchanges | peak MB: heaviest | lightest | MB sent | loop, s |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, *edges)
        for query in options.queries.split(","):
            for tasks in map(int, options.tasks.split(",")):
                for limit in map(int, options.limits.split(",")):
                    cells = _cells(folder, query, tasks, limit, heap)
                    print(f"| {query} | {tasks} | {limit:,} | {cells} |", flush=True)


def _cells(folder: Path, query: str, tasks: int, limit: int, heap: int | None) -> str:
    try:
        if heap is None:
            report = measure(folder, tasks, {"spark.paralagg.rollOverRows": limit}, TEXTS[query])
            peaks = [r["memory"] >> 20 for r in report["ranks"]]
        else:
            report, peaks = _on_spark(folder, tasks, limit, TEXTS[query], heap)
    except subprocess.CalledProcessError:
        return "failed | | | |"
    sent = sum(i["bytes"] for i in report["per_iteration"]) / 1e6
    early = next((part.split()[0] for part in report["form"].split(", ") if "early exchange" in part), "0")
    return f"{early} | {max(peaks):,} | {min(peaks):,} | {sent:,.0f} | {report['seconds']['loop']:.1f}"


def _on_spark(folder: Path, tasks: int, limit: int, text: str, heap: int) -> tuple[dict[str, Any], list[int]]:
    """Run a text in executors of one core. Return its report, and each executor's largest heap after a collection."""
    (folder / "query.dl").write_text(text)
    for log in folder.glob("gc-*"):
        log.unlink()
    confs = {
        "spark.executor.memory": f"{heap}m",
        "spark.executor.extraJavaOptions": f"-Xlog:gc:file={folder}/gc-%p",
        "spark.sql.shuffle.partitions": tasks,
        "spark.paralagg.oneTask.maxRows": 0,
        "spark.paralagg.broadcast.maxBytes": 0,
        "spark.paralagg.rollOverRows": limit,
    }
    command = [sys.executable, "-m", "pyspark_paralagg", "run", str(folder / "query.dl"), "--facts", str(folder)]
    command += ["--out", str(folder / "out"), "--format", "parquet", "--quiet", "--report", str(folder / "report.json")]
    command += ["--backend", "spark", "--master", f"local-cluster[{tasks},1,{heap}]"]
    command += [word for key, value in confs.items() for word in ("--conf", f"{key}={value}")]
    subprocess.run(command, check=True, cwd=folder)  # noqa: S603
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())["p"]
    collections = [re.findall(r"M->(\d+)M", log.read_text()) for log in folder.glob("gc-*")]
    return report, [max(map(int, sizes)) for sizes in collections]


if __name__ == "__main__":
    main()
