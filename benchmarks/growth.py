"""How the time of the Spark engine grows with the graph: ``python -m benchmarks.growth``; writes docs/growth.md.

Shortest paths and components of R-MAT graphs, beside Spark's own scan and sum of the same columns. The picture has
both over the number of edges, with a line that grows as the edges do. The largest graph has 263 million edges; it takes
ten minutes to make and 4 GB on disk.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks import table
from benchmarks.datasets import DEFAULT_CACHE, PROJECT, open_graph
from benchmarks.pictures import QUERIES
from benchmarks.runner import Settings, measure

if TYPE_CHECKING:
    from benchmarks.datasets import Graph
    from benchmarks.runner import Measurement

PAGE = PROJECT / "docs" / "growth.md"
_QUERIES = ("sssp", "components")
_COLOURS = {"sssp": "#3949ab", "components": "#00897b"}
_HEADER = """\
| query | graph | edges | whole, s | as edges grow | loop, s | Spark's scan, s | ÷ scan | heap, MB |
|---|---|--:|--:|--:|--:|--:|--:|--:|"""


def page(found: dict[tuple[str, str], list[Measurement]], graphs: list[Graph], memory: str, command: str) -> str:
    """Return the page. "As edges grow" is the growth of the whole from the graph before, divided by that of edges."""
    rows = []
    for query in _QUERIES:
        before: tuple[float, int] | None = None
        for graph in graphs:
            ours, scan = found[query, graph.name]
            seconds, of_scan = ours.whole(), scan.whole()
            if seconds is None or of_scan is None:
                rows.append(
                    f"| {QUERIES[query]} | {graph.name} | {graph.edges:,} | {ours.failure or scan.failure} | | | | | |"
                )
                continue
            growth = "" if before is None else f"{seconds / before[0] / (graph.edges / before[1]):.2f}"
            before = seconds, graph.edges
            loop, heap = ours.loop() or 0.0, ours.fact("heap_peak_mb")
            numbers = f"{seconds:.2f} | {growth} | {loop:.3f} | {of_scan:.2f} | {seconds / of_scan:.2f}"
            shown = "" if heap is None else f"{heap:.0f}"
            rows.append(f"| {QUERIES[query]} | {graph.name} | {graph.edges:,} | {numbers} | {shown} |")
    machine = "; ".join(f"{name}: {value}" for name, value in table.facts().items())
    return f"""\
# Growth

How the time of the Spark engine grows with the graph. Made by `{command}`: the second run of a
session with a heap of {memory}, from Parquet files to a checksum, one measurement each. The answers up to rmat-20
are compared with other systems in [benchmarks](benchmarks.md); those beyond are not.
{machine}.

![Seconds of shortest paths, of components and of Spark's own scan, by number of edges](images/growth.svg)

"As edges grow" divides the growth of the time, from the graph before, by the growth of the edges: 1 is linear, and
less is better.

{chr(10).join([_HEADER, *rows])}
"""


def draw(found: dict[tuple[str, str], list[Measurement]], graphs: list[Graph]) -> Figure:
    """Draw seconds over edges: solid lines for this project, dashed ones for the scan, a dotted one that is linear."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel="edges", ylabel="seconds, from files to checksum")
    for query in _QUERIES:
        for position, style in enumerate(({"lw": 2, "marker": "o"}, {"lw": 1.2, "ls": "--", "marker": "s"})):
            points = [(g.edges, found[query, g.name][position].whole()) for g in graphs]
            x, y = zip(*((edges, seconds) for edges, seconds in points if seconds is not None), strict=True)
            label = QUERIES[query] if position == 0 else f"Spark's scan for {QUERIES[query].lower()}"
            axes.plot(x, y, label=label, color=_COLOURS[query], markersize=4, **style)  # type: ignore[arg-type]
    last = found["sssp", graphs[-1].name][0].whole()
    if last is not None:
        ends = [graphs[0].edges, graphs[-1].edges]
        axes.plot(ends, [last * e / ends[1] for e in ends], label="linear", color="#9e9e9e", ls=":")
    axes.grid(visible=True, color="#e0e0e0")
    axes.legend(frameon=False)
    return figure


def main() -> int:
    """Measure, write the page and the picture; 1 if something was not computed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", default="16,18,20,22,24")
    parser.add_argument("--memory", default="8g", help="heap of Spark's driver (default 8g)")
    parser.add_argument("--output", type=Path, default=PAGE)
    options = parser.parse_args()
    settings = Settings(DEFAULT_CACHE, repeat=1, runs=2, cap_seconds=900.0, memory=options.memory)
    graphs = [open_graph(f"rmat-{scale}") for scale in options.scales.split(",")]
    found = {}
    for query in _QUERIES:
        for graph in graphs:
            found[query, graph.name] = list(measure(query, graph, ["paralagg", "scan"], settings))
            print(*table.rows(found[query, graph.name]), sep="\n", flush=True)
    options.output.write_text(
        page(found, graphs, options.memory, " ".join(["python -m benchmarks.growth", *sys.argv[1:]])), encoding="utf-8"
    )
    images = options.output.parent / "images"
    images.mkdir(exist_ok=True)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "growth", "font.size": 9.5}):
        draw(found, graphs).savefig(images / "growth.svg", metadata={"Date": None})
    return 1 if any(m.failure for measurements in found.values() for m in measurements) else 0


if __name__ == "__main__":
    sys.exit(main())
