"""Named graphs, each written once as Parquet into the cache directory; every system reads the same files.

A graph is `edges.parquet` (src, dst, w), `vertices.parquet` (v: every vertex with an edge) and `meta.json`. Names:
`rmat-18`, `grid-300`, `dgrid-90`, `tree-11`, `random-10000-12000`, or the name of a real graph beside the project
(REAL_GRAPHS).
Every file has several row groups, so that DuckDB and Spark can scan it with both cores.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import generators
from benchmarks.queries import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.generators import Edges, Longs

PROJECT = Path(__file__).parent.parent
DEFAULT_CACHE = PROJECT / ".bench"
REAL_GRAPHS = PROJECT / ".." / "shared" / "conformance" / "graphs"
REVISION = 2  # raise it when a generator or the way of writing changes: cached graphs are then made anew
ROW_GROUPS = 8
SMALLEST_ROW_GROUP = 1 << 13

_GENERATORS: dict[str, Callable[..., Edges]] = {
    "rmat": generators.rmat,
    "grid": generators.grid,
    "dgrid": generators.directed_grid,
    "tree": generators.tree,
    "random": generators.uniform,
}


@dataclass(frozen=True)
class Graph:
    """A graph on disk. `sources` are the vertices with most outgoing edges, the first has most (ties: smallest id)."""

    name: str
    directory: Path
    sources: list[int]
    vertices: int
    edges: int
    revision: int = REVISION

    @property
    def edges_file(self) -> str:
        """Where src, dst and w are."""
        return str(self.directory / "edges.parquet")

    @property
    def source(self) -> int:
        """Where a query starts that has one source."""
        return self.sources[0]

    @property
    def vertices_file(self) -> str:
        """Where v is."""
        return str(self.directory / "vertices.parquet")


class GraphAbsentError(LookupError):
    """The graph is neither generated nor found beside the project."""


def open_graph(name: str, cache: Path = DEFAULT_CACHE) -> Graph:
    """Return the graph of that name, making and writing it first where the cache does not hold it.

    Raises GraphAbsentError for a name that no generator knows and no file beside the project has.
    """
    directory = cache / "graphs" / name
    meta = directory / "meta.json"
    if meta.exists():
        fields = json.loads(meta.read_text())
        if fields["revision"] == REVISION:
            return Graph(**{**fields, "directory": directory})
    directory.mkdir(parents=True, exist_ok=True)
    (cache / ".gitignore").write_text("*\n")  # the cache keeps itself out of git, wherever it is
    return _write(name, directory, _edges(name))


def _edges(name: str) -> Edges:
    kind, *sizes = name.split("-")
    if kind in _GENERATORS and all(size.isdigit() for size in sizes):
        return _GENERATORS[kind](*map(int, sizes))
    file = REAL_GRAPHS / f"{name}.tsv.gz"
    if not file.exists():
        known = ", ".join(f"{generator}-..." for generator in _GENERATORS)
        raise GraphAbsentError(
            f"no graph named {name}: neither one of {known}, nor a file in ../shared/conformance/graphs"
        )
    with gzip.open(file, "rt") as lines:
        pairs = np.array([line.split("\t")[:2] for line in lines if not line.startswith("#")], dtype=np.int64)
    pairs = np.unique(pairs, axis=0)
    return pairs[:, 0].copy(), pairs[:, 1].copy(), np.ones(len(pairs), np.int64)


def _write(name: str, directory: Path, edges: Edges) -> Graph:
    src, dst, weight = edges
    sources, degrees = _counted(src)
    vertices = np.union1d(sources, _counted(dst)[0])
    most = sources[np.lexsort((sources, -degrees))[: max(SOURCES.values())]]
    graph = Graph(name, directory, most.tolist(), len(vertices), len(src))
    _write_parquet({"src": src, "dst": dst, "w": weight}, graph.edges_file)
    _write_parquet({"v": vertices}, graph.vertices_file)
    # meta.json comes last and in one step: a graph without it was not finished.
    unfinished = directory / "meta.json.tmp"
    unfinished.write_text(json.dumps({**asdict(graph), "directory": name}))
    unfinished.replace(directory / "meta.json")
    return graph


def _counted(ids: Longs) -> tuple[Longs, Longs]:
    """Return the distinct ids, sorted, and how often each occurs; dense ids need little memory."""
    if ids.max() > 4 * len(ids):
        return np.unique(ids, return_counts=True)
    counts = np.bincount(ids)
    distinct = np.flatnonzero(counts)
    return distinct, counts[distinct]


def _write_parquet(columns: dict[str, Longs], file: str) -> None:
    table = pa.table(columns)
    rows = max(SMALLEST_ROW_GROUP, -(-table.num_rows // ROW_GROUPS))
    pq.write_table(table, file, row_group_size=rows)
