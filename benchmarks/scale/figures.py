"""Draw the model in the shape of the papers' figures: seconds by number of ranks, edges by rank, seconds by round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.scale.costs import PARTS, times
from benchmarks.scale.programs import QUERIES
from benchmarks.scale.study import BALANCED, LARGE, MANY_RANKS, RANKS, SCALED, SKEWED, STRONG, TREES, counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from benchmarks.scale.costs import Costs, Network
    from benchmarks.scale.study import Case

_PARTS = {"edges": "#3949ab", "rows": "#00897b", "meetings": "#e53935", "bytes": "#f9a825"}
_PLACED = {"source": "#757575", "hybrid": "#3949ab", "sub-buckets-8": "#00897b"}
_PLACED |= {"sub-buckets-4": "#00897b"}


class Model:
    """Seconds of cases, by part, with stored costs."""

    def __init__(self, costs: dict[str, Costs], network: Network, checks: list[dict[str, Any]]) -> None:
        self.costs = costs | {"join": costs["closure"]}
        self.network = network
        self.checks = checks

    def parts(self, case: Case, ranks: int) -> dict[str, Any]:
        """Return the seconds of each round in each part."""
        return times(counted(case, ranks)[0], self.costs[case[0]], self.network)

    def seconds(self, case: Case, ranks: int) -> float:
        """Return the seconds of the run."""
        return float(sum(part.sum() for part in self.parts(case, ranks).values()))


def measured(model: Model) -> Figure:
    """Draw measured CPU seconds as points, the model's as lines, a panel for each query."""
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    queries = list(dict.fromkeys(c["query"] for c in model.checks))
    panels = figure.subplots(1, len(queries), sharex=True)
    for axes, query in zip(panels, queries, strict=True):
        axes.set(yscale="log", title=QUERIES[query].title, xlabel="ranks")
        graphs = list(dict.fromkeys(c["graph"] for c in model.checks if c["query"] == query))
        for n, graph in enumerate(graphs):
            checks = [c for c in model.checks if (c["query"], c["graph"]) == (query, graph)]
            ranks = [c["ranks"] for c in checks]
            axes.plot(ranks, [1e3 * c["measured"] for c in checks], "o", color=f"C{n}", markersize=4, label=graph)
            axes.plot(ranks, [1e3 * c["measured"] * (1 + c["error"]) for c in checks], color=f"C{n}", lw=1)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.tick_params(axis="y", which="both", labelsize=6.5)
        axes.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    panels[0].set_ylabel("ms: measured (points) and model (lines)")
    return figure


def scaling(model: Model) -> Figure:
    """Draw seconds by part over ranks on the large graph (000, figures 7 and 8), a panel for each query."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, len(STRONG))
    for axes, (query, (graph, placement)) in zip(panels, STRONG.items(), strict=True):
        axes.set_title(f"{QUERIES[query].title}, {graph},\n{placement}", loc="left", fontsize=8.5)
        _stack(axes, model, (query, graph, placement), [r for r in RANKS if r > 1])
    panels[0].set_ylabel("model, ms")
    panels[-1].legend(frameon=False, fontsize=7)
    return figure


def _stack(axes: Axes, model: Model, case: Case, ranks: list[int]) -> None:
    bottom = np.zeros(len(ranks))
    for part in PARTS:
        heights = np.array([1e3 * model.parts(case, n)[part].sum() for n in ranks])
        axes.bar([f"{n:,}" for n in ranks], heights, bottom=bottom, color=_PARTS[part], label=part)
        bottom += heights
    axes.tick_params(axis="x", labelsize=7, rotation=45)


def distribution(model: Model) -> Figure:
    """Draw edges by rank at 4,096 ranks (000, figure 5), and seconds of joins by placement (000, figure 6)."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.set(title=f"edges by rank, 4,096 ranks, {LARGE}", xlabel="share of ranks", yscale="log")
    right.set(title="shortest paths: seconds of edges (model)", xlabel="ranks", xscale="log", yscale="log")
    for name in BALANCED:
        case = ("sssp", LARGE, name)
        edges = counted(case, 4096)[2]
        left.plot(np.linspace(0, 1, len(edges)), edges, color=_PLACED[name], label=name)
        ranks = [n for n in RANKS if n > 1]
        seconds = [model.parts(case, n)["edges"].sum() for n in ranks]
        right.plot(ranks, seconds, marker="o", markersize=3, color=_PLACED[name], label=name)
    right.legend(frameon=False)
    return figure


def rounds(model: Model) -> Figure:
    """Draw the seconds of each round of shortest paths on 1,024 ranks (000, figure 9)."""
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    parts = model.parts(("sssp", *STRONG["sssp"]), 1024)
    bottom = np.zeros(len(parts["edges"]))
    for part in PARTS:
        axes.bar(1 + np.arange(len(bottom)), 1e3 * parts[part], bottom=bottom, color=_PARTS[part], label=part)
        bottom += 1e3 * parts[part]
    axes.set(xlabel=f"round of shortest paths, {LARGE}, 1,024 ranks", ylabel="model, ms")
    axes.legend(frameon=False)
    return figure


def trees(model: Model) -> Figure:
    """Draw closures of trees on 512 ranks (001, figure 10), and strong scaling (001, figure 13; 002, figures 5, 6)."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.set(title="closure of trees, 512 ranks (model)", ylabel="seconds", yscale="log")
    for n, name in enumerate(("source", "sub-buckets-4")):
        heights = [model.seconds(("closure", tree, name), 512) for tree in TREES]
        left.bar(np.arange(len(TREES)) + 0.4 * n - 0.2, heights, 0.4, color=_PLACED[name], label=name)
    left.set_xticks(range(len(TREES)), TREES)
    left.legend(frameon=False)
    right.set(title="strong scaling (model)", xlabel="ranks", ylabel="seconds", xscale="log", yscale="log")
    for query, graph in SCALED:
        seconds = [model.seconds((query, graph, "source"), n) for n in MANY_RANKS]
        right.plot(MANY_RANKS, seconds, marker="o", markersize=3, label=f"{QUERIES[query].title}, {graph}")
    right.legend(frameon=False, fontsize=7)
    return figure


def skew(model: Model) -> Figure:
    """Draw closures of rings and strings with hubs on 256 ranks (002, figure 9): whole, and in four sub-buckets."""
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    panels = figure.subplots(2, 3, sharey="row")
    for row, shape in zip(panels, ("ring", "string"), strict=True):
        for axes, where in zip(row, ("GT", "G", "T"), strict=True):
            graphs = [g for g in SKEWED if g.startswith(shape) and f"-{where}-" in g]
            for n, name in enumerate(("source", "sub-buckets-4")):
                heights = [model.seconds(("closure", g, name), 256) for g in graphs]
                axes.bar(np.arange(len(graphs)) + 0.4 * n - 0.2, heights, 0.4, color=_PLACED[name], label=name)
            axes.set_title(f"{shape}, skew in {' and '.join(where)}", fontsize=9)
            axes.set_xticks(range(len(graphs)), [f"{g.rpartition('-')[2]} %" for g in graphs])
        row[0].set_ylabel("model, s")
    panels[0, 0].legend(frameon=False)
    return figure


PICTURES: dict[str, Callable[[Model], Figure]] = {
    "scale_measured": measured,
    "scale_scaling": scaling,
    "scale_distribution": distribution,
    "scale_rounds": rounds,
    "scale_trees": trees,
    "scale_skew": skew,
}
