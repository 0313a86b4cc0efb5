"""The bars and lines of the examples: sizes of packages, scores of a matcher, iterations of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from examples.data import OSM_ATTRIBUTION
from examples.plots import BANDS, FAINT, INK, LINE, NIGHT, heading, save

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes


def draw_sizes(file: Path, largest: pd.DataFrame) -> None:
    """Draw a bar for each package (package, bytes, brought, packages): itself, and what it needs."""
    rows = np.arange(len(largest))[::-1]
    own, brought = largest.bytes / 1e6, largest.brought / 1e6
    figure, axes = plt.subplots(figsize=(10, 0.38 * len(largest) + 2.4), facecolor=NIGHT)
    axes.set_position((0.19, 0.7 / figure.get_figheight(), 0.72, 1 - 2.2 / figure.get_figheight()))
    _bare(axes)
    axes.barh(rows, own, height=0.68, color=BANDS[0])
    axes.barh(rows, brought, left=own, height=0.68, color=BANDS[2])
    for row, total, needs in zip(rows, own + brought, largest.packages, strict=True):
        axes.text(total, row, f"  {total:,.0f} MB · {needs}", color=FAINT, fontsize=9, va="center")
    axes.set_yticks(rows, largest.package)
    axes.set_ylim(-0.6, len(largest) - 0.4)
    axes.set_xlim(0, float((own + brought).max()) * 1.12)
    axes.set_xticks([])
    axes.tick_params(colors=INK, labelsize=10.5, length=0)
    subtitle = "Size on disk: the package itself (yellow), and the packages that it needs (purple), with their number"
    heading(figure, "What does a package bring along?", subtitle, "The Python environment that ran this")
    save(figure, file)


def draw_scores(file: Path, scores: pd.DataFrame) -> None:
    """Draw precision and recall by threshold: of pairs alone (thin), and of what they connect (broad)."""
    figure, axes = plt.subplots(figsize=(9, 6.6), facecolor=NIGHT)
    axes.set_position((0.09, 0.17, 0.72, 0.59))
    _bare(axes)
    lines = {"precision": ("pair_precision", BANDS[1]), "recall": ("pair_recall", BANDS[0])}
    for what, (alone, colour) in lines.items():
        axes.plot(scores.threshold, scores[alone], color=colour, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.plot(scores.threshold, scores[what], color=colour, linewidth=3, marker="o", markersize=6)
        last = scores.iloc[-1]
        for column, name in ((what, f"{what}, connected"), (alone, f"{what}, pairs alone")):
            offset = (10, 7 if what == "precision" and column == what else -7 if what == "precision" else 0)
            place = {"textcoords": "offset points", "va": "center", "annotation_clip": False}
            axes.annotate(name, (last.threshold, last[column]), offset, color=colour, fontsize=9.5, **place)
    axes.set_ylim(0, 1.03)
    axes.set_yticks(np.linspace(0, 1, 6), [f"{tick:.0%}" for tick in np.linspace(0, 1, 6)])
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_xlabel("similarity from which two records are taken for one person", color=FAINT, fontsize=10.5)
    subtitle = "Chains of similar records find more of each person, and join strangers if links are cheap"
    heading(figure, "Who is the same person?", subtitle, "Made-up records of known persons")
    save(figure, file)


def draw_iterations(file: Path, reports: dict[str, pd.DataFrame]) -> None:
    """Draw the rows that changed in each iteration, a line for each report (iteration, relation, delta, ...)."""
    figure, axes = plt.subplots(figsize=(9, 5.6), facecolor=NIGHT)
    axes.set_position((0.09, 0.17, 0.86, 0.54))
    _bare(axes)
    for (backend, report), colour in zip(reports.items(), BANDS, strict=False):
        delta = report.groupby("iteration").delta.sum()
        axes.plot(delta.index, delta, color=colour, linewidth=2, label=f"{backend}: {len(delta):,} iterations")
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_xlabel("iteration", color=FAINT, fontsize=10.5)
    axes.legend(frameon=False, labelcolor=INK, fontsize=11, loc="upper left")
    heading(
        figure,
        "One job, two engines",
        "Distances that became shorter in each iteration",
        OSM_ATTRIBUTION,
    )
    save(figure, file)


def _bare(axes: Axes) -> None:
    """Leave only faint numbers and lines of the axes."""
    axes.set_facecolor("none")
    axes.tick_params(colors=FAINT, labelsize=10, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
