"""Draw the pictures of docs/benchmarks.md from its own table: `python -m benchmarks.pictures`, and after `--all`.

page -> `read` -> `Results` -> a function for each picture -> SVG. Each file carries the hash of the rows that it was
drawn from; a test compares it with the page.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.datasets import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE = PROJECT / "docs" / "benchmarks.md"
RESULTS = "## Results\n"  # the heading of the table; pictures stand above it
OURS = {"paralagg": "#3949ab", "offload": "#1e88e5", "mpi-2": "#00897b", "mpi-1": "#43a047", "local": "#00acc1"}
OURS["dataframe"] = "#7e57c2"
OTHERS = {
    "scan": "#bdbdbd",
    "duckdb": "#f9a825",
    "graphx": "#e53935",
    "gapbs": "#6d4c41",
    "numba": "#616161",
    "scipy": "#9e9e9e",
}
OTHERS |= {"networkit": "#ec407a", "igraph": "#fb8c00"}
COLOURS = OURS | OTHERS
SIDE_BY_SIDE = "rmat-18"  # the graph that most systems are asked about
QUERIES = {"sssp": "Shortest paths", "components": "Components", "pagerank": "PageRank"}
_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "benchmarks", "grid.color": "#e0e0e0"}
_STYLE |= {"axes.spines.right": False, "axes.spines.top": False, "axes.axisbelow": True}
_STYLE |= {"font.size": 9.5, "axes.titlesize": 9.5}


@dataclass(frozen=True)
class Results:
    """The page's rows by column, edges of its graphs, its command, machine and date, and the hash of all that."""

    rows: list[dict[str, str]]
    edges: dict[str, int]
    origin: str
    digest: str

    def numbers(self, query: str, column: str, graphs: list[str]) -> dict[str, dict[str, float]]:
        """Return the numbers of a column by system and graph, without failures, wrong answers and empty cells."""
        found: dict[str, dict[str, float]] = {}
        for row in self.rows:
            is_asked = row["query"] == query and row["graph"] in graphs
            if is_asked and row[column] and "**" not in row["answer"]:
                found.setdefault(row["system"], {})[row["graph"]] = float(row[column])
        return found


def read(page: str) -> Results:
    """Return what a page of `benchmarks.table` states."""
    header, _, *lines = [line for line in page.splitlines() if line.startswith(("| ", "|--"))]
    columns, *cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in (header, *lines))
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    found = re.findall(r"^- \*\*(\S+)\*\*: .* vertices, ([\d,]+) directed edges", page, re.MULTILINE)
    edges = {graph: int(number.replace(",", "")) for graph, number in found}
    command, date, cores, processor = (
        "".join(re.findall(pattern, page)[:1])
        for pattern in ("Made by `([^`]+)`", r"\bdate: ([^;]+)", r"\bcores: ([^;]+)", r"\bprocessor: ([^;]+)")
    )
    origin = f"{command}; {processor}, {cores} cores; {date}"
    digest = hashlib.sha256("\n".join([origin, str(edges), *lines]).encode()).hexdigest()
    return Results(rows, edges, origin, digest)


def by_size(results: Results, query: str) -> Figure:
    """Draw the whole time over the number of edges, a line for each system."""
    graphs = sorted((g for g in results.edges if g.startswith("rmat-")), key=results.edges.__getitem__)
    numbers = results.numbers(query, "whole, s", graphs)
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", ylabel="seconds, from files to checksum")
    axes.set_title(f"{QUERIES[query]}: time by size; solid: this project, dashed: others", loc="left")
    for system, times in sorted(numbers.items(), key=lambda item: -item[1][max(item[1], key=graphs.index)]):
        at = [graph for graph in graphs if graph in times]
        style: dict[str, Any] = {"lw": 2, "marker": "o"} if system in OURS else {"lw": 1.2, "ls": "--", "marker": "s"}
        x, y = [results.edges[graph] for graph in at], [times[graph] for graph in at]
        axes.plot(x, y, label=system, color=COLOURS[system], markersize=4, **style)
    ticks = [f"{graph}\n{results.edges[graph] / 1e6:.1f} million edges" for graph in graphs]
    axes.set_xticks([results.edges[graph] for graph in graphs], ticks)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(visible=True)
    figure.legend(handles=axes.get_lines(), loc="outside right upper", frameon=False)
    return figure


def side_by_side(results: Results, column: str, title: str, scale: str) -> Figure:
    """Draw one column for one graph: a panel for each query, a bar or (on a logarithmic axis) a dot for each system."""
    figure = Figure(figsize=(7, 3.9), layout="constrained")
    panels = figure.subplots(1, len(QUERIES), sharey=True, sharex=True)
    figure.suptitle(f"{title}, {SIDE_BY_SIDE}", x=0.01, ha="left", fontsize=9.5)
    for axes, (query, name) in zip(panels, QUERIES.items(), strict=True):
        numbers = results.numbers(query, column, [SIDE_BY_SIDE])
        systems = [system for system in reversed(COLOURS) if system in numbers]
        values, colours = [numbers[s][SIDE_BY_SIDE] for s in systems], [COLOURS[s] for s in systems]
        if systems and scale == "log":
            axes.scatter(values, systems, c=colours, s=36, clip_on=False)
        elif systems:
            axes.barh(systems, values, color=colours)
        axes.set_xscale(scale)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_title(name, loc="left")
        axes.grid(visible=True, axis="x")
    return figure


PICTURES: dict[str, tuple[str, Callable[[Results], Figure]]] = {
    "benchmark_sssp": ("Shortest paths: seconds by number of edges", lambda r: by_size(r, "sssp")),
    "benchmark_components": ("Components: seconds by number of edges", lambda r: by_size(r, "components")),
    "benchmark_pagerank": ("PageRank: seconds by number of edges", lambda r: by_size(r, "pagerank")),
    "benchmark_loop": (
        "Loop: seconds by system, on a logarithmic axis",
        lambda r: side_by_side(r, "loop, s", "Seconds of the loop, as each system tells it apart from loading", "log"),
    ),
    "benchmark_memory": (
        "Memory: megabytes by system",
        lambda r: side_by_side(r, "memory, MB", "Peak memory of all processes, MB", "linear"),
    ),
}


def illustrate(page: Path) -> None:
    """Draw those pictures that have data into `images/` beside the page, and show them above its table."""
    text = page.read_text(encoding="utf-8")
    results = read(text)
    (page.parent / "images").mkdir(exist_ok=True)
    shown = []
    with mpl.rc_context(_STYLE):
        for name, (title, draw) in PICTURES.items():
            figure = draw(results)
            if not any(axes.has_data() for axes in figure.axes):
                continue
            shown.append(f"![{title}](images/{name}.svg)\n\n")
            figure.supxlabel(results.origin, fontsize=7.5, color="#616161")
            metadata = {"Description": f"rows: sha256 {results.digest}", "Date": None}
            figure.savefig(page.parent / "images" / f"{name}.svg", metadata=metadata)
    head, heading, table = re.sub(r"!\[[^\]]*\]\(images/benchmark_\w+\.svg\)\n\n", "", text).partition(RESULTS)
    page.write_text("".join([head, *shown, heading, table]), encoding="utf-8")


if __name__ == "__main__":
    illustrate(PAGE)
