"""Programs whose engines apply the best rows first, over one graph, with the rows that others compute for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

if TYPE_CHECKING:
    from collections.abc import Callable

VERTICES, EDGES = 4000, 8000
PATHS = "found(x, $MIN(0)) :- start(x). found(y, $MIN(d + w)) :- found(x, d), edge(x, y, w)."
WIDEST = "found(x, $MAX(1000)) :- start(x). found(y, $MAX(min(d, w))) :- found(x, d), edge(x, y, w)."
COMPONENTS = """
    found(x, $MIN(x)) :- vertex(x).
    found(y, $MIN(c)) :- found(x, c), edge(x, y, _).
    found(y, $MIN(c)) :- found(x, c), edge(y, x, _).
"""
LABELS = "found(x, $MIN(v)) :- vertex(x, v). found(y, $MIN(c)) :- found(x, c), edge(x, y)."


@dataclass(frozen=True)
class OrderedCase:
    """A text, its input tables, and the sorted rows of ``found``."""

    text: str
    facts: dict[str, pa.Table]
    rows: list[tuple[Any, ...]]

    @property
    def columns(self) -> dict[str, list[tuple[str, str]]]:
        """Return the columns of each input, with Spark's types."""
        types = {pa.int64(): "bigint", pa.float64(): "double"}
        return {name: [(f.name, types[f.type]) for f in table.schema] for name, table in self.facts.items()}


def graph() -> np.ndarray:  # type: ignore[type-arg]
    """Return distinct edges (x, y, weight).

    Vertex 0 has eight neighbours, hubs through which all other vertices are at the same distance. So a rank whose
    loop returns with many rows to apply also receives many rows from others.
    """
    random = np.random.default_rng(3)
    others = np.arange(9, VERTICES)
    hubs = np.arange(1, 9)
    pairs = np.unique(random.integers(9, VERTICES, (EDGES, 2)), axis=0)
    return np.concatenate(
        [
            np.stack([np.zeros(8, np.int64), hubs, np.ones(8, np.int64)], axis=1),
            np.stack([1 + others % 8, others, np.zeros(len(others), np.int64)], axis=1),
            np.concatenate([pairs, random.integers(1, 100, (len(pairs), 1))], axis=1),
        ]
    )


def paths() -> OrderedCase:
    """Return shortest paths."""
    return OrderedCase(
        PATHS, _facts("edge", "start"), [(n, int(d)) for n, d in enumerate(_distances()) if np.isfinite(d)]
    )


def negative() -> OrderedCase:
    """Return shortest paths with negative weights but without a negative cycle: a potential changes every path."""
    x, y, w = graph().T
    potential = np.random.default_rng(4).integers(-1000, 1000, VERTICES)
    facts = {**_facts("start"), "edge": pa.table({"x": x, "y": y, "w": w + potential[y] - potential[x]})}
    shifted = _distances() + potential - potential[0]
    return OrderedCase(PATHS, facts, [(n, int(d)) for n, d in enumerate(shifted) if np.isfinite(d)])


def components() -> OrderedCase:
    """Return connected components, by their least vertex."""
    _, labels = connected_components(_matrix(), directed=False)
    minima = {c: int(np.flatnonzero(labels == c)[0]) for c in set(labels.tolist())}
    return OrderedCase(COMPONENTS, _facts("edge", "vertex"), [(n, minima[c]) for n, c in enumerate(labels.tolist())])


def widest() -> OrderedCase:
    """Return the widest paths, computed by rounds over all edges."""
    x, y, w = graph().T
    width = np.full(VERTICES, -1, np.int64)
    width[0] = 1000
    for _ in range(VERTICES):
        before = width.copy()
        np.maximum.at(width, y, np.minimum(width[x], w))
        if (before == width).all():
            break
    return OrderedCase(WIDEST, _facts("edge", "start"), [(n, int(v)) for n, v in enumerate(width) if v >= 0])


def infinite() -> OrderedCase:
    """Return distances of which many are infinite. No limit exceeds these, so their rows are applied last."""
    x, y, w = graph().T
    weights = np.where(y % 3 == 0, np.inf, w + 0.5)
    # Without the assumption, infinities of both signs could meet, and an infinite weight would be refused.
    text = PATHS.replace("$MIN(0)", "$MIN(0.0)") + "\n.assume edge.w >= 0"
    distances = np.full(VERTICES, np.nan)
    distances[0] = 0.0
    for _ in range(VERTICES):
        before = distances.copy()
        np.fmin.at(distances, y, distances[x] + weights)
        if np.array_equal(before, distances, equal_nan=True):
            break
    facts = {**_facts("start"), "edge": pa.table({"x": x, "y": y, "w": weights})}
    return OrderedCase(text, facts, [(n, float(d)) for n, d in enumerate(distances) if not np.isnan(d)])


def labels_with_nan() -> OrderedCase:
    """Return labels along chains of ten, one of which is NaN, so only some ranks or tasks start with a NaN."""
    x = np.arange(VERTICES)
    first = np.where(x == 8, np.nan, x * 7919 % 1009)
    starts = x[x % 10 != 9]
    facts = {"edge": pa.table({"x": starts, "y": starts + 1}), "vertex": pa.table({"x": x, "v": first})}
    minima = np.fmin.accumulate(first.reshape(-1, 10), axis=1).ravel()
    return OrderedCase(LABELS, facts, [(n, float(v)) for n, v in enumerate(minima)])


CASES: dict[str, Callable[[], OrderedCase]] = {
    c.__name__: c for c in (paths, negative, components, widest, infinite, labels_with_nan)
}


def _facts(*names: str) -> dict[str, pa.Table]:
    x, y, w = graph().T
    tables = {
        "edge": pa.table({"x": x, "y": y, "w": w}),
        "start": pa.table({"x": [0]}),
        "vertex": pa.table({"x": range(VERTICES)}),
    }
    return {name: tables[name] for name in names}


def _matrix() -> csr_array:
    x, y, w = graph().T
    return coo_array((w, (x, y)), shape=(VERTICES, VERTICES)).tocsr()


def _distances() -> np.ndarray:  # type: ignore[type-arg]
    return dijkstra(_matrix(), indices=0)
