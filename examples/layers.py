"""Pictures of small networks: boxes in layers from left to right, and curves between them.

For lineage, ownership, bills of materials and pointers, after Sugiyama, Tagawa and Toda 1981: a box stands one layer to
the right of the last box that leads to it; an arrow over several layers has a lane in each between; within a layer
boxes and lanes stand where their neighbours are on average, so that few curves cross. An arrow that closes a cycle
leads back to the left.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Curve

from examples.plots import HALO, INK, NIGHT, heading, save

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

QUIET = "#3a4563"
WIDTH, HEIGHT = 0.64, 0.72  # of a box, where layers and rows are 1 apart
ROUNDED = "round,pad=0,rounding_size=0.06"
LANE = 0.45  # rows that an arrow takes where it passes boxes
SWEEPS = 30
CUBIC = (0.65**3, 3 * 0.65**2 * 0.35, 3 * 0.65 * 0.35**2, 0.35**3)  # where on a curve a text stands: 35 % of it
Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A node: a line or two of text on a colour."""

    name: str
    text: str
    colour: str = QUIET


@dataclass(frozen=True)
class Arrow:
    """An edge between two boxes, with a text if it has one."""

    src: str
    dst: str
    text: str = ""
    colour: str = QUIET

    def lanes(self, layer: dict[str, int]) -> list[str]:
        """The names of the arrow's stations, from ``src`` to ``dst``."""
        first, last = layer[self.src], layer[self.dst]
        between = range(first + 1, last) if first < last else range(first - 1, last, -1)
        return [self.src, *(f"{self.src} → {self.dst} at {number}" for number in between), self.dst]


def draw(  # noqa: PLR0913, PLR0917 - a picture and its three texts
    file: Path, boxes: Sequence[Box], arrows: Sequence[Arrow], title: str, subtitle: str, source: str
) -> None:
    """Draw the network; coloured arrows lie above quiet ones."""
    layer = layers_of(boxes, arrows)
    places = place(layer, arrows)
    top = max(y for _, y in places.values()) + 0.5
    inches = (max(2.6 * (1 + max(layer.values())), 9.0), 0.6 * 2 * top + 2.2)
    figure, axes = plt.subplots(figsize=inches, facecolor=NIGHT)
    axes.set_position((0.01, 0.6 / inches[1], 0.98, 1 - 1.9 / inches[1]))
    axes.set_axis_off()
    axes.set_xlim(-0.42, max(layer.values()) + 0.42)
    axes.set_ylim(-top, top)
    for arrow in sorted(arrows, key=lambda arrow: arrow.colour != QUIET):
        _draw_arrow(axes, [places[name] for name in arrow.lanes(layer)], arrow)
    for box in boxes:
        x, y = places[box.name]
        shape = FancyBboxPatch((x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, boxstyle=ROUNDED)
        shape.set(facecolor=box.colour, edgecolor="none", zorder=3)
        axes.add_patch(shape)
        ink = INK if box.colour == QUIET else NIGHT
        axes.text(x, y, box.text, color=ink, fontsize=9.5, ha="center", va="center", zorder=4, linespacing=1.3)
    heading(figure, title, subtitle, source)
    save(figure, file)


def layers_of(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> dict[str, int]:
    """The layer of each box, from 0; of a cycle's boxes the first one stands on the left."""
    order = {box.name: number for number, box in enumerate(boxes)}
    layer = dict.fromkeys(order, 0)
    for _ in boxes:  # as many rounds as a path can have boxes
        for arrow in arrows:
            if not _leads_to(arrow.dst, arrow.src, arrows) or order[arrow.src] < order[arrow.dst]:
                layer[arrow.dst] = max(layer[arrow.dst], layer[arrow.src] + 1)
    return layer


def _leads_to(src: str, dst: str, arrows: Sequence[Arrow]) -> bool:
    reached, size = {src}, 0
    while size != (size := len(reached)):
        reached |= {arrow.dst for arrow in arrows if arrow.src in reached}
    return dst in reached


def place(layer: dict[str, int], arrows: Sequence[Arrow]) -> dict[str, Point]:
    """Where each box and each lane of an arrow stands: layer and row, the middle row is 0."""
    neighbours: dict[str, list[str]] = {name: [] for name in layer}
    columns: dict[int, list[str]] = {}
    for name, number in layer.items():
        columns.setdefault(number, []).append(name)
    for arrow in arrows:
        stations = arrow.lanes(layer)
        step = 1 if layer[arrow.src] < layer[arrow.dst] else -1
        for number, name in enumerate(stations[1:-1], 1):
            columns[layer[arrow.src] + step * number].append(name)
        for one, other in pairwise(stations):
            neighbours.setdefault(one, []).append(other)
            neighbours.setdefault(other, []).append(one)
    row = {name: y for names in columns.values() for name, y in _stacked(names, layer)}

    def pull(name: str) -> float:
        around = [row[other] for other in neighbours[name]]
        return -sum(around) / len(around) if around else -row[name]

    for sweep in range(SWEEPS):
        for number in sorted(columns, reverse=bool(sweep % 2)):
            columns[number].sort(key=pull)
            row.update(_stacked(columns[number], layer))
    return {name: (float(number), row[name]) for number, names in columns.items() for name in names}


def _stacked(names: Iterable[str], layer: dict[str, int]) -> list[tuple[str, float]]:
    """The names from the top down, around row 0; a lane takes less room than a box."""
    sizes = [(name, 1.0 if name in layer else LANE) for name in names]
    below = sum(size for _, size in sizes) / 2
    return [(name, (below := below - size) + size / 2) for name, size in sizes]


def _draw_arrow(axes: Axes, stations: Sequence[Point], arrow: Arrow) -> None:
    """Draw a curve that is level where it passes a layer."""
    towards = WIDTH / 2
    if stations[-1][0] < stations[0][0]:  # back to the left, a little lower than what leads to the right
        towards, stations = -towards, [(x, y - HEIGHT / 4) for x, y in stations]
    corners, codes = [(stations[0][0] + towards, stations[0][1])], [Curve.MOVETO]
    for (x, y), (u, v) in pairwise(stations):
        middle = (x + u) / 2
        corners += [(x + towards, y), (middle, y), (middle, v), (u - towards, v)]
        codes += [Curve.LINETO, *[Curve.CURVE4] * 3]
    is_quiet = arrow.colour == QUIET
    style = {"color": arrow.colour, "linewidth": 1.1 if is_quiet else 2.0, "zorder": 1 if is_quiet else 2}
    axes.add_patch(FancyArrowPatch(path=Curve(corners, codes), arrowstyle="-|>", mutation_scale=9, fill=False, **style))
    if arrow.text:
        first = [*zip(CUBIC, corners[1:5], strict=True)]
        at = sum(share * x for share, (x, _) in first), sum(share * y for share, (_, y) in first)
        axes.text(*at, arrow.text, color=INK, fontsize=8.5, ha="center", va="center", path_effects=HALO, zorder=5)
