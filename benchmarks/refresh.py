"""Recursive tables on Delta: seconds of a refresh by kind and size of the change, compared with a full run.

    python -m benchmarks.refresh                              # all cases, R-MAT 2^18
    python -m benchmarks.refresh --case inserts --graph rmat-20 --query even
    python -m benchmarks.refresh --case day --day-graph rmat-16 --commits 24
    python -m benchmarks.refresh --case sizes --picture docs/images/refresh.svg

Needs the extras `bench` and `delta`. Every refresh is followed by a full one of the same recursion into another table,
and both tables must have the same rows. The first change of each table warms up and is not counted. Making the change
itself is not counted either.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from delta.tables import DeltaTable
from matplotlib.figure import Figure

import pyspark_paralagg as ra
from benchmarks.datasets import DEFAULT_CACHE
from benchmarks.refresh_lake import GRAPH_QUERIES, GRAPH_TEXTS, Graph, Parts
from benchmarks.systems.spark_session import builder
from pyspark_paralagg.delta.tables import DELTA_CONFS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

CASES = ("inserts", "mixed", "parts", "day", "sizes")
QUERIES = {"components": "#00897b", "sssp": "#3949ab"}
SIZES = (1, 100, 1_000, 10_000, 100_000)
SHARE = 0.001
FOLDER = DEFAULT_CACHE.absolute() / "refresh"
HEADER = (
    "| case | query | changed rows | kind | fixpoint, s | whole, s | full, s | ÷ full | reason |\n"
    "|---|---|--:|---|--:|--:|--:|--:|---|"
)


@dataclass(frozen=True)
class Timing:
    """One refresh and the full run after it, in seconds; `reason` is that of the refresh."""

    case: str
    query: str
    rows: int
    kind: str
    reason: str
    phases: dict[str, float]
    whole: float
    full: float

    @property
    def fixpoint(self) -> float:
        """Return the seconds of the fixpoint; those of a full refresh are part of `write`."""
        return self.phases["fixpoint"]

    def line(self) -> str:
        """Return a row of the table."""
        numbers = f"{self.fixpoint:.2f} | {self.whole:.2f} | {self.full:.2f} | {self.whole / self.full:.2f}"
        return f"| {self.case} | {self.query} | {self.rows:,} | {self.kind} | {numbers} | {self.reason} |"


def session(memory: str) -> SparkSession:
    """Return a session with Delta."""
    from delta import configure_spark_with_delta_pip  # noqa: PLC0415 - an extra

    unconfigured = builder(memory)
    confs = {**DELTA_CONFS, "spark.databricks.delta.snapshotPartitions": "2", "spark.sql.shuffle.partitions": "2"}
    for key, value in confs.items():
        unconfigured = unconfigured.config(key, value)
    return configure_spark_with_delta_pip(ra.configure(unconfigured)).getOrCreate()


class Pair:
    """A maintained table, and one of the same recursion that is always refreshed in full."""

    def __init__(
        self, spark: SparkSession, case: str, query: str, view: Callable[[str], ra.delta.RecursiveTable]
    ) -> None:
        self._spark, self._case, self._query = spark, case, query
        self.kept, self._whole = view("kept"), view("whole")
        self.kept.refresh()
        self._whole.refresh()

    def refresh(self, rows: int) -> Timing:
        """Refresh both tables after a change of `rows` rows; raise `AssertionError` if their rows differ."""
        for source in self.kept._sources.values():  # noqa: SLF001 - no public way
            # Reads the new log entries and the list of files, as every first reader of a version has to.
            DeltaTable.forPath(self._spark, source.place).detail().collect()
        began = time.perf_counter()
        report = self.kept.refresh()
        between = time.perf_counter()
        self._whole.refresh(full=True)
        ended = time.perf_counter()
        kept, whole = (self._spark.read.format("delta").load(view._target.place) for view in (self.kept, self._whole))  # noqa: SLF001 - no public way
        assert kept.exceptAll(whole).isEmpty(), report
        assert kept.count() == whole.count(), report
        spent = dict(report.seconds)
        return Timing(
            self._case, self._query, rows, report.kind, report.reason, spent, between - began, ended - between
        )


def median(timings: list[Timing]) -> Timing:
    """Return the timing with the medians of all seconds, and kind and reason of the last one."""
    last = timings[-1]
    phases = {name: statistics.median(t.phases[name] for t in timings) for name in last.phases}
    whole, full = (statistics.median(getattr(t, name) for t in timings) for name in ("whole", "full"))
    return Timing(last.case, last.query, last.rows, last.kind, last.reason, phases, whole, full)


def changes_of_a_graph(  # noqa: PLR0913, PLR0917 - a case and its queries
    spark: SparkSession, case: str, name: str, rounds: int, sizes: tuple[int, ...], queries: Iterable[str]
) -> Iterator[Timing]:
    """Yield the medians of each query for each size of the change.

    `inserts` appends rows; `mixed` deletes as many rows as it appends.
    """
    for query in queries:
        graph = Graph(spark, name, FOLDER / query)
        pair = Pair(spark, case, query, lambda target, g=graph, q=query: g.view(q, target))  # type: ignore[misc]
        for position, size in enumerate(sizes or (round(graph.edges * SHARE),)):
            timings = []
            for _ in range(rounds + (position == 0)):
                if case == "mixed":
                    graph.delete(size)
                graph.insert(size)
                timings.append(pair.refresh(size * (1 + (case == "mixed"))))
                print("  " + ", ".join(f"{k} {v:.2f}" for k, v in timings[-1].phases.items()), flush=True)
            yield median(timings[position == 0 :])


def change_of_a_part(spark: SparkSession, count: int, rounds: int) -> Iterator[Timing]:
    """Yield the medians of refreshes after one changed row: a delivery time, and a quantity."""
    parts = Parts(spark, count, FOLDER / "parts")
    for query, view, change in (
        ("ready day", parts.view, parts.change),
        ("quantities, a sum", parts.quantities, parts.refit),
    ):
        pair = Pair(spark, "parts", query, view)
        timings = []
        for _ in range(rounds + 1):
            change()
            timings.append(pair.refresh(1))
            print("  " + ", ".join(f"{k} {v:.2f}" for k, v in timings[-1].phases.items()), flush=True)
        yield median(timings[1:])


def day(spark: SparkSession, name: str, commits: int) -> Iterator[Timing]:
    """Yield each refresh of six tables over one graph, after each of `commits` mixed commits."""
    graph = Graph(spark, name, FOLDER / "day")
    queries = (*GRAPH_QUERIES, *GRAPH_TEXTS)
    pairs = [Pair(spark, "day", q, lambda target, q=q: graph.view(q, target)) for q in queries]  # type: ignore[misc]
    for number in range(commits):
        kind = ("insert", "delete", "update", "merge")[number % 4]
        size = int(graph.dice.integers(1, 200))
        getattr(graph, kind)(size)
        for pair in pairs:
            yield pair.refresh(size)


def totals(timings: list[Timing]) -> Iterator[str]:
    """Yield a line for each table of the day, and one for all: total seconds against those of full refreshes."""
    names = [*dict.fromkeys(t.query for t in timings), "all"]
    for name in names:
        of = [t for t in timings if name in (t.query, "all")]
        whole, full = sum(t.whole for t in of), sum(t.full for t in of)
        kinds = ", ".join(f"{sum(t.kind == k for t in of)} {k}" for k in ("incremental", "full", "none"))
        numbers = f"{whole:.1f} | {full:.1f} | {whole / full:.2f}"
        yield f"| day, total | {name} | {len(of)} refreshes | {kinds} | | {numbers} | |"


def draw(timings: list[Timing], graph: str) -> Figure:
    """Draw seconds over the number of inserted rows: the refresh, its fixpoint, and a full run."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel="edges inserted", ylabel="seconds")
    axes.set_title(f"Refresh of a Delta table after inserts, {graph}", loc="left")
    for query, colour in QUERIES.items():
        of = [t for t in timings if t.query == query]
        x = [t.rows for t in of]
        for label, style in (("refresh", "-"), ("its fixpoint", ":"), ("full", "--")):
            y = [{"refresh": t.whole, "its fixpoint": t.fixpoint, "full": t.full}[label] for t in of]
            axes.plot(x, y, label=f"{query}: {label}", color=colour, ls=style, marker="o", markersize=4)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.grid(visible=True, color="#e0e0e0")
    figure.legend(handles=axes.get_lines(), loc="outside right upper", frameon=False)
    return figure


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.refresh", description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--graph", default="rmat-18")
    kept = (*GRAPH_QUERIES, *GRAPH_TEXTS)
    parser.add_argument("--query", choices=kept, action="append", help="components and sssp if it is missing")
    parser.add_argument("--day-graph", default="rmat-16")
    parser.add_argument("--parts", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--picture", type=Path, help="file of the picture of the case `sizes`")
    options = parser.parse_args()
    spark = session(options.memory)
    print(HEADER)
    for case in options.case or CASES:
        if case == "parts":
            found = change_of_a_part(spark, options.parts, options.rounds)
        elif case == "day":
            found = day(spark, options.day_graph, options.commits)
        else:
            sizes = {"inserts": (), "mixed": (1_000,), "sizes": SIZES}[case]
            queries = options.query or QUERIES
            found = changes_of_a_graph(spark, case, options.graph, options.rounds, sizes, queries)
        timings = []
        for timing in found:
            print(timing.line(), flush=True)
            timings.append(timing)
        if case == "day":
            print(*totals(timings), sep="\n")
        if case == "sizes" and options.picture is not None:
            with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "refresh", "font.size": 9.5}):
                draw(timings, options.graph).savefig(options.picture, metadata={"Date": None})
    spark.stop()


if __name__ == "__main__":
    main()
