"""Structures that were chosen in the engines, measured: ``python -m benchmarks.structures --graph rmat-18``.

1. *Sub-buckets to ranks* (paper 002, figure 7): round robin, as the engine has it, against a hash of bucket and
   sub-bucket. Counts only: ranks without a sub-bucket, and the edges of the rank with most, by the average.
2. *The join index* on edges: a hash table or a table by position, each with the rows of a key side by side, against a
   sorted array, and a hash tree (paper 002: rows of a key are a tree; here a sorted array). The probes are the
   targets of all edges, in the order of the file; each finds the first edge of its key and their number. A second kind
   of probe asks whether a pair exists.
3. *A set of pairs that grows*, as in a closure: a hash table against a sorted array that each round merges.

All seconds are the least of some runs, on one core.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from benchmarks.scale.graphs import make
from benchmarks.scale.pairs import PairRounds, replay
from benchmarks.scale.placement import vertex_ranks
from benchmarks.scale.programs import QUERIES
from mpi_backend.kernels.cache import njit
from mpi_backend.state.index import place_rows
from mpi_backend.state.key_map import KeyMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.generators import Longs
    from benchmarks.scale.graphs import Graph
    from mpi_backend.kernels.compiler import Array

    T = TypeVar("T")

_RUNS = 3
RANKS = (128, 512, 2048, 4096, 16384)
_MIX = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True)
def _sum_of_groups(groups: Any, offsets: Any, payload: Any) -> Any:  # noqa: ANN401 - compiled
    total = 0
    for g in groups:
        if g >= 0:
            total += payload[offsets[g]] + offsets[g + 1] - offsets[g]
    return total


@njit(nogil=True)
def _search(keys: Any, low: Any, high: Any, key: Any) -> Any:  # noqa: ANN401 - compiled
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True)
def _sum_of_sorted(probes: Any, keys: Any, payload: Any) -> Any:  # noqa: ANN401 - compiled
    total = 0
    for key in probes:
        low = _search(keys, 0, len(keys), key)
        if low < len(keys) and keys[low] == key:
            total += payload[low] + _search(keys, low, len(keys), key + 1) - low
    return total


@njit(nogil=True)
def _count_in_groups(groups: Any, offsets: Any, payload: Any, wanted: Any) -> Any:  # noqa: ANN401 - compiled
    count = 0
    for n in range(len(groups)):
        g = groups[n]
        if g >= 0:
            end = offsets[g + 1]
            i = _search(payload, offsets[g], end, wanted[n])
            count += i < end and payload[i] == wanted[n]
    return count


def mappings(graph: Graph, ranks: int, sub_buckets: int) -> Iterator[tuple[str, float, float]]:
    """Yield the name of a mapping, its idle ranks in percent, and its edges' max/avg; there is a bucket for each rank.

    >>> [name for name, _, _ in mappings(make("ring-10"), 2, 2)]
    ['round robin', 'hashing']
    """
    bucket = vertex_ranks(graph.size, ranks)[graph.src].astype(np.int64)
    sub = vertex_ranks(graph.size, sub_buckets)[graph.dst].astype(np.int64)
    pairs = np.arange(ranks * sub_buckets)
    all_buckets, all_subs = pairs // sub_buckets, pairs % sub_buckets
    hashed = (pairs.astype(np.uint64) + np.uint64(1)) * _MIX
    hashed ^= hashed >> np.uint64(31)
    hashed *= _MIX
    for name, rank_of in (
        ("round robin", (all_buckets + all_subs) % ranks),
        ("hashing", ((hashed >> np.uint64(32)) % np.uint64(ranks)).astype(np.int64)),
    ):
        idle = ranks - len(np.unique(rank_of))
        edges = np.bincount(rank_of[bucket * sub_buckets + sub], minlength=ranks)
        yield name, 100 * idle / ranks, float(edges.max() / edges.mean())


def indexes(graph: Graph) -> Iterator[tuple[str, float, float, float, int]]:
    """Yield for each index its name, seconds to build and for both probes, and its bytes."""
    src, dst = graph.src, graph.dst
    probes, pairs = dst, (dst, src)  # is there an edge back?
    expected = 0
    for name, by_position, is_sorted in (
        ("table by position", True, False),
        ("hash table", False, False),
        ("hash tree", False, True),
    ):
        build, (keys, offsets, payload) = _timed(partial(_grouped, src, dst, by_position, is_sorted))
        probe, total = _timed(partial(_probe, keys, offsets, payload, probes))
        expected = total
        exists = np.nan
        if is_sorted:
            exists, _ = _timed(partial(_exists, keys, offsets, payload, pairs))
        size = keys.bytes + offsets.nbytes + payload.nbytes
        yield name, build, probe, exists, size
    # Places of payload in a group differ between the tables: only sorted ones have the same first edge.
    build, (sorted_keys, sorted_payload) = _timed(lambda: _sorted(src, dst))
    probe, total = _timed(lambda: _sum_of_sorted(probes, sorted_keys, sorted_payload))
    assert total == expected
    both = sorted_keys * graph.size + sorted_payload
    wanted = pairs[0] * graph.size + pairs[1]
    exists, _ = _timed(lambda: int((both[np.minimum(np.searchsorted(both, wanted), len(both) - 1)] == wanted).sum()))
    yield "sorted array", build, probe, exists, sorted_keys.nbytes + sorted_payload.nbytes


def _probe(keys: KeyMap, offsets: Array, payload: Array, probes: Longs) -> int:
    return int(_sum_of_groups(keys.find(probes), offsets, payload))


def _exists(keys: KeyMap, offsets: Array, payload: Array, pairs: tuple[Longs, Longs]) -> int:
    return int(_count_in_groups(keys.find(pairs[0]), offsets, payload, pairs[1]))


def _grouped(src: Longs, dst: Longs, by_position: bool, is_sorted: bool) -> tuple[KeyMap, Array, Array]:  # noqa: FBT001
    keys = KeyMap(1)
    if by_position:
        keys.expect_all([src])
    offsets, order = place_rows(keys.add(src), len(keys), None)
    payload = dst.astype(np.int32)[order]
    if is_sorted:
        groups = np.repeat(np.arange(len(keys)), np.diff(offsets))
        payload = payload[np.lexsort((payload, groups))]
    return keys, offsets, payload


def _sorted(src: Longs, dst: Longs) -> tuple[Longs, Array]:
    order = np.lexsort((dst, src))
    return src[order], dst.astype(np.int32)[order]


def growing(graph: Graph) -> Iterator[tuple[str, float, int, int]]:
    """Yield for each structure seconds to add all derived pairs of a closure round by round, pairs, and bytes."""
    rounds = replay(QUERIES["closure"], graph)
    assert isinstance(rounds, PairRounds)
    size = graph.size
    derived = [rounds.rows[0], *(_step(rows, rounds) for rows in rounds.rows)]
    count = sum(map(len, rounds.rows))
    seconds, table = _timed(lambda: _hashed(derived, size))
    assert len(table) == count
    yield "hash table", seconds, sum(map(len, derived)), table.bytes
    seconds, merged = _timed(lambda: _merged(derived))
    assert len(merged) == count
    yield "sorted array", seconds, sum(map(len, derived)), merged.nbytes


def _step(rows: Longs, rounds: PairRounds) -> Longs:
    size, edges = rounds.graph.size, rounds.edges
    y = rows % size
    degree = edges.offsets[y + 1] - edges.offsets[y]
    ends = np.cumsum(degree)
    at = np.arange(int(ends[-1])) + np.repeat(edges.offsets[y] - (ends - degree), degree)
    derived: Longs = np.repeat(rows // size, degree) * size + edges.targets[at]
    return derived


def _hashed(derived: list[Longs], size: int) -> KeyMap:
    keys = KeyMap(2)
    for rows in derived:
        keys.add(np.column_stack([rows // size, rows % size]).ravel())
    return keys


def _merged(derived: list[Longs]) -> Longs:
    known = np.zeros(0, np.int64)
    for rows in derived:
        new = np.unique(rows)
        places = np.searchsorted(known, new)
        is_known = known[np.minimum(places, len(known) - 1)] == new if len(known) else np.zeros(len(new), np.bool_)
        known = np.insert(known, places[~is_known], new[~is_known])
    return known


def _timed(body: Callable[[], T]) -> tuple[float, T]:
    """Return the least seconds of some runs, after one that compiles, and the result."""
    result = body()
    seconds = []
    for _ in range(_RUNS):
        started_at = time.thread_time()
        result = body()
        seconds.append(time.thread_time() - started_at)
    return min(seconds), result


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="rmat-18")
    parser.add_argument("--closures", default="rmat-9,up-14,ring-1000")
    options = parser.parse_args()
    graph = make(options.graph)
    print("| ranks | sub-buckets | idle: round robin | hashing | edges max/avg: round robin | hashing |")
    print("|--:|--:|--:|--:|--:|--:|")
    for ranks in RANKS:
        for sub_buckets in (1, 4):
            (_, idle, edges), (_, hashed_idle, hashed_edges) = mappings(graph, ranks, sub_buckets)
            values = f"{idle:.0f} % | {hashed_idle:.0f} % | {edges:.2f} | {hashed_edges:.2f}"
            print(f"| {ranks:,} | {sub_buckets} | {values} |")
    print("\n| join index | build, ns an edge | find a key's edges, ns | is there a pair, ns | bytes an edge |")
    print("|---|--:|--:|--:|--:|")
    count = len(graph.src)
    for name, build, probe, exists, size in indexes(graph):
        shown = "" if np.isnan(exists) else f"{1e9 * exists / count:.0f}"
        per_edge = f"{1e9 * build / count:.0f} | {1e9 * probe / count:.0f} | {shown} | {size / count:.1f}"
        print(f"| {name} | {per_edge} |")
    print("\n| closure | set of pairs | derived pairs | ns a derived pair | bytes |\n|---|---|--:|--:|--:|")
    for name in options.closures.split(","):
        for structure, seconds, derived, size in growing(make(name)):
            print(f"| {name} | {structure} | {derived:,} | {1e9 * seconds / derived:.0f} | {size:,} |")


if __name__ == "__main__":
    main()
