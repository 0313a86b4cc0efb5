"""The maps of the road examples: distances as a glow, travel times as areas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize

from examples.data import OSM_ATTRIBUTION
from examples.plots import BANDS, FAINT, GLOW, INK, LINE, NIGHT, SEA, heading, label, save

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRES_PER_DEGREE = 111_195  # of latitude
LON_TO_LAT = math.cos(math.radians(29.95))  # a degree of longitude in degrees of latitude, around La Serena
WIDTHS = {"motorway": 1.9, "trunk": 1.7, "primary": 1.4, "secondary": 1.1, "tertiary": 0.9}


def draw_roads(  # noqa: PLR0913, PLR0917 - a picture of five frames
    file: Path, found: pd.DataFrame, roads: pd.DataFrame, known: pd.DataFrame, start: str, way: list[int]
) -> None:
    """Draw every road, coloured by its distance from the start; the known places, and the way to the farthest crossing.

    ``found`` (node, metres, lon, lat), ``roads`` (link, src, dst, kind), ``known`` (place, side, node,
    metres): ``side`` is where the label goes.
    """
    at = found.set_index("node")
    roads = roads.drop_duplicates("link")
    roads = roads[roads.src.isin(at.index) & roads.dst.isin(at.index)]
    ends = np.stack([at.loc[roads[end], ["lon", "lat"]].to_numpy() for end in ("src", "dst")], axis=1)
    km = (at.metres.loc[roads.src].to_numpy() + at.metres.loc[roads.dst].to_numpy()) / 2000
    order = np.argsort(-km)  # near roads lie on top
    widths = roads.kind.map(WIDTHS).fillna(0.7).to_numpy(dtype=float)

    figure, axes = plt.subplots(figsize=(9, 12), facecolor=NIGHT)
    axes.set_position((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_aspect(1 / LON_TO_LAT, adjustable="datalim")
    scale = Normalize(0, km.max())
    axes.add_collection(
        LineCollection(ends[order], array=km[order], cmap=GLOW, norm=scale, linewidths=widths[order], capstyle="round")
    )
    axes.set_ylim(found.lat.min() - 0.01, found.lat.max() + 0.03)  # the title stands above

    path = at.loc[way]
    axes.plot(path.lon, path.lat, color=NIGHT, linewidth=5.5, zorder=3)
    axes.plot(path.lon, path.lat, color=INK, linewidth=2.0, zorder=4)
    label_places(axes, at, known, start)
    end = path.iloc[-1]
    label(axes, end.lon, end.lat, f"Farthest crossing  {end.metres / 1000:.1f} km", "left", size=10)
    axes.text(at.lon[way[0]] - 0.065, at.lat[way[0]] + 0.02, "Pacific Ocean", color=SEA, size=15, style="italic")

    heading(figure, "How far is it by road?", f"Shortest way from {start}, Chile, to every crossing", OSM_ATTRIBUTION)
    distance_scale(figure, found.metres / 1000, scale)
    save(figure, file)


def draw_isochrones(  # noqa: PLR0913, PLR0917 - a picture of three frames
    file: Path, found: pd.DataFrame, crossings: pd.DataFrame, roads: pd.DataFrame, start: str, bands: tuple[int, ...]
) -> None:
    """Draw the areas that are reached within ``bands`` minutes, the slowest first, and all roads above them.

    ``found`` (node, minutes), ``crossings`` (node, lon, lat), ``roads`` (link, src, dst).
    """
    at = crossings.set_index("node")
    roads = roads.drop_duplicates("link")
    ends = np.stack([at.loc[roads[end], ["lon", "lat"]].to_numpy() for end in ("src", "dst")], axis=1)
    minutes = found.set_index("node").minutes
    takes = np.maximum(*(minutes.reindex(roads[end]).fillna(np.inf).to_numpy() for end in ("src", "dst")))

    figure, axes = plt.subplots(figsize=(9, 11), facecolor=NIGHT)
    axes.set_position((0, 0, 1, 1))
    axes.set_axis_off()
    axes.add_collection(LineCollection(ends[takes == np.inf], colors=LINE, linewidths=0.6))
    # A broad stroke along each road makes the area; the faster ones lie on top.
    for band, colour in reversed(list(zip(bands, BANDS, strict=True))):
        axes.add_collection(LineCollection(ends[takes <= band], colors=colour, linewidths=11, capstyle="round"))
    axes.add_collection(LineCollection(ends[takes <= max(bands)], colors=NIGHT, linewidths=0.55, alpha=0.75))

    reached = at.loc[found.node]
    axes.set_ylim(reached.lat.min() - 0.015, reached.lat.max() + 0.03)  # the title stands above
    middle, half = reached.lon.mean(), np.ptp(axes.get_ylim()) / LON_TO_LAT * 9 / 11 / 2
    axes.set_xlim(middle - half, middle + half)
    home = at.loc[found.node[found.minutes.idxmin()]]
    axes.plot(home.lon, home.lat, "o", markersize=13, color=INK, markeredgecolor=NIGHT, markeredgewidth=2, zorder=5)
    label(axes, home.lon, home.lat, start, "left", size=12, weight="bold")
    for number, (band, colour) in enumerate(zip(bands, BANDS, strict=True)):
        line = 0.16 - 0.032 * number
        figure.text(0.06, line, "●", color=colour, fontsize=17, va="center")
        size = f"{(found.minutes <= band).sum():,} crossings"
        figure.text(0.095, line, f"{band} minutes   {size}", color=INK, fontsize=12, va="center")
    shown = f"{', '.join(map(str, bands[:-1]))} and {bands[-1]}"
    heading(figure, "How far by bicycle?", f"Within {shown} minutes of {start}, Chile", OSM_ATTRIBUTION)
    save(figure, file)


def label_places(axes: Axes, at: pd.DataFrame, known: pd.DataFrame, start: str) -> None:
    """Mark each place with a dot, its name and distance; the start with a larger dot."""
    for place, side, node, metres in zip(known.place, known.side, known.node, known.metres, strict=True):
        lon, lat = at.lon[node], at.lat[node]
        if place == start:
            axes.plot(lon, lat, "o", markersize=15, color=INK, markeredgecolor=NIGHT, markeredgewidth=2, zorder=5)
            label(axes, lon, lat, place, side, size=11, weight="bold")
        else:
            label(axes, lon, lat, f"{place}  {metres / 1000:.1f} km", side, size=10)


def distance_scale(figure: Figure, km: pd.Series, scale: Normalize) -> None:
    """Draw the colour bar, and on it how many crossings lie at each distance."""
    top = float(scale.vmax or 1)
    box = figure.add_axes((0.06, 0.075, 0.32, 0.09), facecolor="none")
    counts, edges = np.histogram(km, bins=np.linspace(0, top, 46))
    box.bar(edges[:-1], counts, np.diff(edges), align="edge", color=GLOW(scale((edges[:-1] + edges[1:]) / 2)))
    bar = (-0.2 * counts.max(), -0.08 * counts.max())  # below the histogram
    box.imshow(np.linspace(0, 1, 256)[np.newaxis], cmap=GLOW, aspect="auto", extent=(0, top, *bar))
    box.set_xlim(0, top)
    box.set_ylim(bar[0], counts.max())
    box.set_yticks([])
    box.set_xticks(range(0, int(top) + 1, 5))
    box.tick_params(colors=FAINT, labelsize=10, length=0)
    box.set_xlabel("km by road · height: number of crossings", color=FAINT, fontsize=9.5, loc="left")
    for spine in box.spines.values():
        spine.set_visible(False)
