"""Strong components of few edges, in this process: two recursions and their jobs of Spark would take seconds."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

T = TypeVar("T")


def strong_components(edges: Iterable[tuple[T, T]]) -> Iterator[list[T]]:
    """Yield the vertices of each strongly connected component of more than one vertex; no vertex is None.

    >>> sorted(map(sorted, strong_components([(1, 2), (2, 1), (2, 3), (3, 4), (4, 5), (5, 3)])))
    [[1, 2], [3, 4, 5]]

    Source: Sharir 1981, "A strong-connectivity algorithm and its applications in data flow analysis".
    """
    after, before = defaultdict(list), defaultdict(list)
    for tail, head in edges:
        after[tail].append(head)
        before[head].append(tail)
    seen: set[T] = set()
    finished = [vertex for start in list(after) for vertex in _finished(start, after, seen)]
    seen.clear()
    for last in reversed(finished):
        component = list(_finished(last, before, seen))
        if len(component) > 1:
            yield component


def _finished(start: T, neighbours: Mapping[T, list[T]], seen: set[T]) -> Iterator[T]:
    """Yield the vertices that ``start`` reaches and that are not ``seen``, each after those that it reaches."""
    path = [] if start in seen else [(start, iter(neighbours.get(start, ())))]
    seen.add(start)
    while path:
        vertex, others = path[-1]
        new = next((other for other in others if other not in seen), None)
        if new is None:
            path.pop()
            yield vertex
        else:
            seen.add(new)
            path.append((new, iter(neighbours.get(new, ()))))
