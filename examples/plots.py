"""The picture of the road demo, and what both demos' pictures share: colours, heading, file.

Plain matplotlib on pandas frames; nothing here knows how the numbers were found. `sunburst` draws the other demo.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")  # files only: no display is needed

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patheffects import withStroke
from PIL import Image

from examples.data import OSM_ATTRIBUTION

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRES_PER_DEGREE = 111_195  # of latitude
LON_TO_LAT = math.cos(math.radians(29.95))  # a degree of longitude in degrees of latitude, around La Serena

NIGHT, INK, FAINT, SEA = "#0b1020", "#f4f1e8", "#8791a8", "#3a4a70"
DPI = 144
GLOW = LinearSegmentedColormap.from_list(
    "glow", ["#fff3c4", "#ffd166", "#ff9f5a", "#f4617b", "#b95bc0", "#6f67d8", "#3f7fd6"]
)
WIDTHS = {"motorway": 1.9, "trunk": 1.7, "primary": 1.4, "secondary": 1.1, "tertiary": 0.9}
HALO = [withStroke(linewidth=3.5, foreground=NIGHT)]


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


def label_places(axes: Axes, at: pd.DataFrame, known: pd.DataFrame, start: str) -> None:
    """Mark each place with a dot, its name and distance; the start with a larger dot."""
    for place, side, node, metres in zip(known.place, known.side, known.node, known.metres, strict=True):
        lon, lat = at.lon[node], at.lat[node]
        if place == start:
            axes.plot(lon, lat, "o", markersize=15, color=INK, markeredgecolor=NIGHT, markeredgewidth=2, zorder=5)
            label(axes, lon, lat, place, side, size=11, weight="bold")
        else:
            label(axes, lon, lat, f"{place}  {metres / 1000:.1f} km", side, size=10)


def label(axes: Axes, lon: float, lat: float, text: str, side: str, **font: Any) -> None:  # noqa: ANN401
    """Draw a dot with its label on the given side."""
    axes.plot(lon, lat, "o", markersize=6, color=INK, markeredgecolor=NIGHT, zorder=6)
    axes.annotate(
        text,
        (lon, lat),
        (12 if side == "right" else -12, 0),
        textcoords="offset points",
        ha="left" if side == "right" else "right",
        va="center",
        color=INK,
        path_effects=HALO,
        zorder=7,
        **font,
    )


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


def heading(figure: Figure, title: str, subtitle: str, attribution: str) -> None:
    """Write title and subtitle at the top, where the data are from at the bottom."""
    inches = figure.get_figheight()
    figure.text(0.06, 1 - 0.58 / inches, title, color=INK, fontsize=27, fontweight="bold", va="center")
    figure.text(0.06, 1 - 0.98 / inches, subtitle, color=FAINT, fontsize=13, va="center")
    figure.text(0.06, 0.25 / inches, f"{attribution} · drawn with pyspark-paralagg", color=FAINT, fontsize=9)


def save(figure: Figure, file: Path) -> None:
    """Write the PNG with a palette: a third of the size, and no difference that one can see."""
    file.parent.mkdir(parents=True, exist_ok=True)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=DPI, facecolor=NIGHT)
    plt.close(figure)
    Image.open(picture).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
