"""Find the cycle along which values improve without end, and name its keys in the error.

In a traced run each change stores the row that it came from. If values improve forever, these parents form a cycle, as
in the algorithm of Bellman and Ford.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.loop.loop_stats import OVERFLOW
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.shape import column_types
from mpi_backend.state.types import Column, to_arrow
from pyspark_paralagg.errors import FixpointError

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop.fixpoint_loop import EndlessClimbError, FixpointLoop
    from mpi_backend.state.loop_state import LoopState

_MOST_SHOWN = 12
_SEARCH_ALWAYS = 64
"""Iterations up to which each one searches for a cycle; later only those that are powers of two do."""
_LIMIT_HINT = "if the values converge, raise that setting; otherwise bound them with a filter, or set max_iterations."
_OVERFLOW_HINT = "no cycle makes it grow: give the base a wider type, such as a decimal with more digits, or double."


def endless_climb_error(traced: FixpointLoop, loop: LoopState, climb: EndlessClimbError) -> FixpointError:
    """Run again until parents form a cycle, and return the error that names it. All ranks return the same error."""
    traced.start()
    cycle: list[str] = []
    iteration, overflowed = 0, False
    while not cycle and iteration <= 2 * climb.iterations and not overflowed:
        iteration += 1
        overflowed = traced.step()[OVERFLOW] > 0
        if iteration <= _SEARCH_ALWAYS or iteration.bit_count() == 1 or overflowed:
            cycle = _find_cycle(loop)
    message = f"a sum overflows in iteration {climb.iterations}"
    hint = "remove the cycle, bound the values with a filter, or set max_iterations with on_limit='return'."
    limit = loop.facts.stratum.climb_limit
    if not climb.overflowed:
        limit_text = "the most that spark.paralagg.climb.maxIterations allows" if limit else "more than there are keys"
        message = f"values still change after {climb.iterations} iterations, {limit_text}"
        hint = _LIMIT_HINT if limit else hint
    elif not cycle:
        hint = _OVERFLOW_HINT
    cycle_text = f": a cycle never ends, {_render(cycle)}." if cycle else "."
    return FixpointError(
        "PARALAGG_OVERFLOW" if climb.overflowed and not cycle else "PARALAGG_NO_FIXPOINT",
        f"{traced.name}: {message}{cycle_text}",
        value=cycle or None,
        hint=hint,
    )


def _find_cycle(loop: LoopState) -> list[str]:
    """Return the keys on a cycle of parents, in its order, or an empty list. Collective."""
    pairs = []
    for p in loop.parts.values():
        ids = np.flatnonzero(p.state.p[: len(p.keys)] >= 0)
        pairs.append(np.stack([p.origin[0] + ids, p.state.p[ids]], axis=1))
    local_pairs = np.ascontiguousarray(np.concatenate(pairs)).ravel()
    all_pairs = np.concatenate([np.frombuffer(b, np.int64) for b in loop.comm.allgather_bytes(local_pairs.tobytes())])
    nodes = _cycle_nodes(all_pairs.reshape(-1, 2))
    local_keys = {
        n: _key_text(loop, int(node)) for n, node in enumerate(nodes) if int(node) >> 32 & 0xFFFF == loop.comm.rank
    }
    keys: dict[int, str] = {}
    for data in loop.comm.allgather_bytes(json.dumps(local_keys).encode()):
        keys |= {int(k): v for k, v in json.loads(data).items()}
    return [keys[n] for n in sorted(keys)]


def _cycle_nodes(pairs: Array) -> list[int]:
    ids = KeyMap(1)
    places = ids.add(np.ascontiguousarray(pairs[:, 0]))
    parent = np.full(len(ids), -1, np.int64)
    parent[places] = ids.find(np.ascontiguousarray(pairs[:, 1]))
    walk = np.zeros(len(ids), np.int64)  # the walk that first visited a node
    for start in range(len(ids)):
        at = start
        while at >= 0 and walk[at] == 0:
            walk[at] = start + 1
            at = int(parent[at])
        if at >= 0 and walk[at] == start + 1:
            path = [at]
            while int(parent[path[-1]]) != at:
                path.append(int(parent[path[-1]]))
            return [int(ids.keys[n, 0]) for n in reversed(path)]  # parents point backwards
    return []


def _key_text(loop: LoopState, node: int) -> str:
    part = list(loop.parts.values())[node >> 48]
    row = node & 0xFFFFFFFF
    k = len(part.planned.keys)
    values = []
    for c, column_type in enumerate(column_types(part.planned)[:k]):
        null = part.shape.keys[c] and bool(part.keys.keys[row, k] >> c & 1)
        texts = loop.strings.all() if column_type.kind == "text" else None
        column = Column(column_type, part.keys.keys[row : row + 1, c].copy(), np.array([null]) if null else None, texts)
        value = to_arrow(column)[0].as_py()
        values.append(f"{part.planned.keys[c].name}={'null' if value is None else value}")
    return f"({', '.join(values)})"


def _render(cycle: list[str]) -> str:
    """Return the closed cycle as text. Cut a long one in its middle."""
    path = [*cycle, cycle[0]]
    if len(path) <= _MOST_SHOWN:
        return " -> ".join(path)
    return " -> ".join(path[: _MOST_SHOWN - 1]) + f" -> … ({len(cycle)} keys) -> {cycle[0]}"
