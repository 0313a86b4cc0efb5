"""The picture of the taxonomy demo: a tree as rings around its root.

An angle is a number of species, a ring a rank: a taxon's slice lies within its parent's, the largest first. Taxa of
other ranks (there are forty) pass their slice on without being drawn.
"""

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

from examples.data import NCBI_ATTRIBUTION
from examples.plots import INK, NIGHT, heading, save

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd
    from matplotlib.projections.polar import PolarAxes

RINGS = ("superkingdom", "kingdom", "phylum", "class", "order")
HOLE = 1.1  # radius of the middle; a ring is 1 thick
SMALLEST, SMALLEST_TYPE = 0.0035, 4.2  # radians, points; what is smaller is left out
POINTS = 341 / (HOLE + len(RINGS))  # of type, to the unit of radius
HUES = {  # of a branch of the tree and all that lies below it
    "Eukaryota": 0.09, "Metazoa": 0.055, "Arthropoda": 0.075, "Insecta": 0.105, "Chordata": 0.985, "Mollusca": 0.02,
    "Viridiplantae": 0.37, "Fungi": 0.77, "Bacteria": 0.58, "Archaea": 0.49, "Viruses": 0.90,
}  # fmt: skip


@dataclass(frozen=True)
class Slice:
    """One taxon in the picture; angles in radians, clockwise from the top, radii in rings."""

    name: str
    start: float
    width: float
    inner: float
    outer: float
    hue: float
    is_odd: bool  # of its siblings, for a change of shade from one to the next


def draw_tree(file: Path, large: pd.DataFrame) -> None:
    """Draw the sunburst of ``large`` (taxon, parent, rank, name, species), which holds every parent but the root's."""
    root = large[large.parent.isna()].iloc[0]
    figure = plt.figure(figsize=(10, 11.4), facecolor=NIGHT)
    axes: PolarAxes = figure.add_axes((0.026, 0.035, 0.948, 0.8315), projection="polar")  # type: ignore[assignment]
    axes.set_axis_off()
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(0, HOLE + len(RINGS))
    for part in slices(large):
        draw_slice(axes, part)
    middle = f"{root.species / 1e6:.2f}\nmillion\nspecies"
    axes.text(0, 0, middle, color=INK, fontsize=15, fontweight="bold", ha="center", va="center")
    heading(
        figure, "The tree of life", "Species below each taxon: domain, kingdom, phylum, class, order", NCBI_ATTRIBUTION
    )
    save(figure, file)


def slices(large: pd.DataFrame) -> Iterator[Slice]:
    """Yield a slice for each taxon of a drawn rank, from its parent's slice to the end of its own ring."""
    children = dict(iter(large.sort_values("species", ascending=False).groupby("parent")))
    root = large[large.parent.isna()].iloc[0]
    per_species = 2 * math.pi / root.species
    pending = [(root.taxon, 0.0, HOLE, 0.0)]
    while pending:
        parent, start, inner, hue = pending.pop()
        if parent not in children:
            continue
        for number, child in enumerate(children[parent].to_dict("records")):
            width, branch, outer = child["species"] * per_species, HUES.get(child["name"], hue), inner
            if child["rank"] in RINGS and width > SMALLEST:
                outer = HOLE + RINGS.index(child["rank"]) + 1
                yield Slice(child["name"], start, width, inner, outer, branch, bool(number % 2))
            pending.append((child["taxon"], start, outer, branch))
            start += width


def draw_slice(axes: PolarAxes, part: Slice) -> None:
    """Draw the slice, and its name along or across the ring, whichever leaves room for larger letters."""
    angle, radius = part.start + part.width / 2, (part.inner + part.outer) / 2
    depth = part.outer - part.inner
    lightness = 0.72 - 0.05 * (part.outer - HOLE) + (0.05 if part.is_odd else 0.0)
    colour = colorsys.hls_to_rgb(part.hue, lightness, 0.56)
    axes.bar(angle, depth, part.width, part.inner, color=colour, edgecolor=NIGHT, linewidth=0.7)

    length, height = 0.67 * len(part.name), 1.3  # of the name, in units of its size
    around = POINTS * 2 * radius * math.sin(min(part.width, math.pi) / 2)
    along, across = (min(a / length, b / height) for a, b in ((around, POINTS * depth), (POINTS * depth, around)))
    largest = 11.5 - 0.7 * (part.outer - HOLE)
    size = min(max(along, across), largest)
    if size >= SMALLEST_TYPE:
        degrees = -math.degrees(angle) + (0 if along >= min(across, largest) else 90)
        upright = (degrees + 90) % 180 - 90
        axes.text(angle, radius, part.name, color=NIGHT, fontsize=size, ha="center", va="center", rotation=upright)
