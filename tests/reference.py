"""Interpret a recursion over Python rows: the reference semantics (docs/design.md, "Definition"). Simple but slow.

Rows are tuples in the relation's order, keys first. A step is a Python function from relations to rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Row = tuple[Any, ...]
State = dict[str, list[Row]]


@dataclass(frozen=True)
class Meaning:
    """The number of keys, and the aggregate of each dependent column; ``("min_by", i)`` has column i as order."""

    keys: int
    aggs: tuple[str | tuple[str, int], ...] = ()


def agg(rows: list[Row], meaning: Meaning) -> list[Row]:
    """Return ``agg_K(rows)``."""
    groups: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[: meaning.keys]].append(row[meaning.keys :])
    return [
        (*key, *(_value(members, i, aggregate) for i, aggregate in enumerate(meaning.aggs)))
        for key, members in groups.items()
    ]


def fixpoint(
    relations: dict[str, Meaning],
    base: State,
    step: Callable[[State], State],
    *,
    initial: State | None = None,
    max_iterations: int | None = None,
) -> tuple[State, int]:
    """Return the fixpoint of R(0) = agg(X), R(i+1) = agg(C + F(R(i))), and the number of applications of F."""
    start = {**base, **(initial or {})}
    state = {name: agg(start[name], meaning) for name, meaning in relations.items()}
    for applied in count(1):
        derived = step(state)
        after = {name: agg(base[name] + derived[name], meaning) for name, meaning in relations.items()}
        if all(set(after[n]) == set(state[n]) for n in relations) or applied == max_iterations:
            return after, applied
        state = after
    raise AssertionError


def _value(members: list[Row], i: int, aggregate: str | tuple[str, int]) -> Any:  # noqa: ANN401 - any value
    values = [m[i] for m in members if m[i] is not None]
    if isinstance(aggregate, tuple):
        name, order = aggregate
        orders = [m[order] for m in members if m[order] is not None]
        if not orders:
            return None
        best = min(orders) if name == "min_by" else max(orders)
        return min((m[i] for m in members if m[order] == best and m[i] is not None), default=None)
    if aggregate == "count":
        return sum(1 if m[i] is None else m[i] for m in members)
    if not values:
        return None
    result = values[0]
    for value in values[1:]:
        result = _COMBINE[aggregate](result, value)
    return result


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "min": min,
    "max": max,
    "sum": lambda a, b: a + b,
    "any": lambda a, b: a or b,
    "all": lambda a, b: a and b,
    "bit_or": lambda a, b: a | b,
    "bit_and": lambda a, b: a & b,
}
