"""Draw a ``RunReport`` with matplotlib, for ``ra.report(df).plot()``.

The upper plot shows, for each relation, the changed rows and all rows after each iteration, on a logarithmic axis. The
lower plot shows the time of each iteration. The figure is created without pyplot, so only the caller refers to it.
"""

from __future__ import annotations

import io
import math
from statistics import fmean
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pyspark_paralagg.report.report_page import COLOURS, NOTHING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pyspark_paralagg.report.report_page import ReportData


_MARKED = 40
"""The largest number of iterations at which each is drawn with a marker."""
_BARS = 150
"""The largest number of time bars; with more iterations, each bar is the mean of several."""
_GREY = "#888888"
_MILLI = 1e-3
_DOTS_AN_INCH = 120


class ReportFigure(Figure):
    """A figure that notebooks show even if pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=_DOTS_AN_INCH)
        return out.getvalue()


def plot_report(report: ReportData) -> ReportFigure:
    """Return the figure. ``report`` has at least one iteration."""
    figure = ReportFigure(figsize=(8.5, 5.2), layout="constrained")
    rows, time = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    spent = sum(report.seconds.values())
    figure.suptitle(
        f"{report.backend}: {report.iterations:,} iterations, {report.tuples:,} rows, {spent:,.2f} s",
        x=0.01,
        ha="left",
        fontsize=13,
        fontweight="bold",
    )
    _draw_rows(rows, report)
    _draw_seconds(time, report)
    for axes in (rows, time):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, axis="y", color=_GREY, alpha=0.25, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(length=3)
    return figure


def _draw_rows(axes: Axes, report: ReportData) -> None:
    relations = dict.fromkeys(r["relation"] for r in report.rounds)
    for n, name in enumerate(relations):
        rounds = [r for r in report.rounds if r["relation"] == name]
        iterations, colour = [r["iteration"] for r in rounds], COLOURS[n % len(COLOURS)]
        marker = "o" if len(rounds) <= _MARKED else ""
        totals = [r["total"] or math.nan for r in rounds]  # a logarithm has no zero
        axes.plot(iterations, totals, color=colour, linestyle=":", linewidth=1.6, label=f"{name}: rows")
        # The last iteration changes nothing: its line goes down to the axis, without a marker.
        deltas = [max(r["delta"], NOTHING) for r in rounds]
        marked = [position for position, r in enumerate(rounds) if r["delta"]]
        axes.plot(
            iterations,
            deltas,
            color=colour,
            linewidth=1.8,
            marker=marker,
            markersize=4.5,
            markevery=marked,
            label=f"{name}: changed rows",
        )
    axes.set_yscale("log")
    axes.set_ylim(bottom=NOTHING)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else ""))
    axes.set_ylabel("rows")
    axes.legend(frameon=False, fontsize=9, ncols=min(2, len(relations)), loc="best")


def _draw_seconds(axes: Axes, report: ReportData) -> None:
    seconds = {r["iteration"]: r["seconds"] for r in report.rounds}  # relations of an iteration share its time
    iterations, spent = list(seconds), list(seconds.values())
    stretch = -(-len(spent) // _BARS)
    parts = range(0, len(spent), stretch)
    heights = [fmean(spent[low : low + stretch]) for low in parts]
    scale, unit = (1, "s") if max(heights) >= 1 else (1 / _MILLI, "ms")
    middles = [fmean(iterations[low : low + stretch]) for low in parts]
    axes.bar(middles, [height * scale for height in heights], color=_GREY, width=0.8 * stretch)
    axes.set_ylabel(f"{unit} per iteration")
    axes.set_xlabel("iteration")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlim(0.4, max(seconds) + 0.6)
    summary = ", ".join(f"{name} {value:.2f} s" for name, value in report.seconds.items() if value >= _MILLI * 5)
    axes.set_title(summary, loc="right", fontsize=9, color=_GREY)
