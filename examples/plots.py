"""What all pictures of the examples share: colours, labels, heading, file.

Plain matplotlib on pandas frames; nothing here knows how the numbers were found. `maps` draws the road examples,
`charts` bars and lines, `layers` networks from left to right, `sunburst` the taxonomy.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")  # files only: no display is needed

import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patheffects import withStroke
from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NIGHT, INK, FAINT, SEA, LINE = "#0b1020", "#f4f1e8", "#8791a8", "#3a4a70", "#28324f"
DPI = 144
GLOW = LinearSegmentedColormap.from_list(
    "glow", ["#fff3c4", "#ffd166", "#ff9f5a", "#f4617b", "#b95bc0", "#6f67d8", "#3f7fd6"]
)
BANDS = ("#ffe29a", "#f58a5e", "#a84f9c")  # where there are three of something
HALO = [withStroke(linewidth=3.5, foreground=NIGHT)]


def heading(figure: Figure, title: str, subtitle: str, attribution: str) -> None:
    """Write title and subtitle at the top, where the data are from at the bottom."""
    inches = figure.get_figheight()
    figure.text(0.06, 1 - 0.58 / inches, title, color=INK, fontsize=27, fontweight="bold", va="center")
    figure.text(0.06, 1 - 0.98 / inches, subtitle, color=FAINT, fontsize=13, va="center")
    figure.text(0.06, 0.25 / inches, f"{attribution} · drawn with pyspark-paralagg", color=FAINT, fontsize=9)


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


def save(figure: Figure, file: Path) -> None:
    """Write the PNG with a palette: a third of the size, and no difference that one can see."""
    file.parent.mkdir(parents=True, exist_ok=True)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=DPI, facecolor=NIGHT)
    plt.close(figure)
    Image.open(picture).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
