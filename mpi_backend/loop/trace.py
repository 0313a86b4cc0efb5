"""Finds the cycle that a run climbs without end.

Each change of a traced run notes the row that it came from; where values improve for ever, these parents form a cycle
(as in Bellman and Ford's algorithm), and its keys are what a person wants to see.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.loop.stats import OVERFLOW
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.shape import column_types
from mpi_backend.state.types import Column, to_arrow
from pyspark_paralagg.errors import FixpointError

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop.fixpoint import EndlessClimbError, Fixpoint
    from mpi_backend.state.loop_state import Loop

_MOST_SHOWN = 12
_OFTEN = 64
_OF_LIMIT = "if the values converge, raise that setting; otherwise bound them with a filter, or set max_iterations."
_OF_OVERFLOW = (
    "no cycle leads there: the sum leaves its type on the way, even if later rows take it back. Cast the column to "
    "double, or to a wider decimal."
)


def endless(traced: Fixpoint, loop: Loop, climb: EndlessClimbError) -> FixpointError:
    """Runs again until parents form a cycle: the error that names it. Every rank gets the same."""
    traced.start()
    cycle: list[str] = []
    iteration, overflowed = 0, False
    while not cycle and iteration <= 2 * climb.iterations and not overflowed:
        iteration += 1
        overflowed = traced.step()[OVERFLOW] > 0
        if iteration <= _OFTEN or iteration.bit_count() == 1 or overflowed:
            cycle = _find(loop)
    what = f"a sum overflows in iteration {climb.iterations}"
    hint = "remove the cycle, bound the values with a filter, or set max_iterations with on_limit='return'."
    limit = loop.facts.stratum.climb_limit
    if not climb.overflowed:
        most = "the most that spark.paralagg.climb.maxIterations allows" if limit else "more than there are keys"
        what = f"values still change after {climb.iterations} iterations, {most}"
        hint = _OF_LIMIT if limit else hint
    elif not cycle:
        hint = _OF_OVERFLOW
    told = f": a cycle goes on without end, {_shown(cycle)}." if cycle else "."
    return FixpointError(
        "PARALAGG_NO_FIXPOINT",
        f"{traced.name}: {what}{told}",
        value=cycle or None,
        hint=hint,
    )


def _find(loop: Loop) -> list[str]:
    """The keys on a cycle, in its order, or nothing. Collective."""
    pairs = []
    for p in loop.parts.values():
        ids = np.flatnonzero(p.state.p[: len(p.keys)] >= 0)
        pairs.append(np.stack([p.origin[0] + ids, p.state.p[ids]], axis=1))
    mine = np.ascontiguousarray(np.concatenate(pairs)).ravel()
    everyone = np.concatenate([np.frombuffer(b, np.int64) for b in loop.comm.gather(mine.tobytes())])
    nodes = _cycle(everyone.reshape(-1, 2))
    named = {n: _key(loop, int(node)) for n, node in enumerate(nodes) if int(node) >> 32 & 0xFFFF == loop.comm.rank}
    told: dict[int, str] = {}
    for data in loop.comm.gather(json.dumps(named).encode()):
        told |= {int(k): v for k, v in json.loads(data).items()}
    return [told[n] for n in sorted(told)]


def _cycle(pairs: Array) -> list[int]:
    ids = KeyMap(1)
    places = ids.add(np.ascontiguousarray(pairs[:, 0]))
    parent = np.full(len(ids), -1, np.int64)
    parent[places] = ids.find(np.ascontiguousarray(pairs[:, 1]))
    walk = np.zeros(len(ids), np.int64)  # the walk that first came by
    for start in range(len(ids)):
        at = start
        while at >= 0 and walk[at] == 0:
            walk[at] = start + 1
            at = int(parent[at])
        if at >= 0 and walk[at] == start + 1:
            around = [at]
            while int(parent[around[-1]]) != at:
                around.append(int(parent[around[-1]]))
            return [int(ids.keys[n, 0]) for n in reversed(around)]  # parents point backwards
    return []


def _key(loop: Loop, node: int) -> str:
    part = list(loop.parts.values())[node >> 48]
    row = node & 0xFFFFFFFF
    k = len(part.of.keys)
    values = []
    for c, of in enumerate(column_types(part.of)[:k]):
        null = part.shape.keys[c] and bool(part.keys.keys[row, k] >> c & 1)
        texts = loop.strings.all() if of.kind == "text" else None
        column = Column(of, part.keys.keys[row : row + 1, c].copy(), np.array([null]) if null else None, texts)
        value = to_arrow(column)[0].as_py()
        values.append(f"{part.of.keys[c].name}={'null' if value is None else value}")
    return f"({', '.join(values)})"


def _shown(cycle: list[str]) -> str:
    """The cycle closed, cut in its middle where it is long."""
    around = [*cycle, cycle[0]]
    if len(around) <= _MOST_SHOWN:
        return " -> ".join(around)
    return " -> ".join(around[: _MOST_SHOWN - 1]) + f" -> … ({len(cycle)} keys) -> {cycle[0]}"
