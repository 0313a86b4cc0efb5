"""The engine's own work in an exchange between many ranks: ``python -m benchmarks.many_ranks --ranks 2,1024,16384``.

One rank of shortest paths encodes rows for a hundred others, and reads the votes and messages of all, as in each
iteration. MPI's part is left out: messages come back at once. Prints milliseconds, the best and the median of 30.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from mpi_backend.comm import SingleRank
from mpi_backend.exchange.exchange import DeltaExchange
from mpi_backend.kernels.flags import QUEUED
from mpi_backend.load.inputs import Inputs
from mpi_backend.load.loop_builder import LoopBuilder
from mpi_backend.loop.loop_stats import sum_votes, votes
from mpi_backend.state.facts import Facts
from mpi_backend.state.strings import Strings
from mpi_backend.state.types import Column, Table, type_of
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.whole import whole_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import LoopState

_TEXT = "d(x, $MIN(0)) :- start(x). d(y, $MIN(v + w)) :- d(x, v), edge(x, y, w)."
_COLUMNS = {"edge": [("x", "bigint"), ("y", "bigint"), ("w", "bigint")], "start": [("x", "bigint")]}
_ROWS, _TIMES = 100, 30


class ManyRanks(SingleRank):
    """One of many ranks, which gets back what it sends."""

    def __init__(self, size: int) -> None:
        self.size = size

    def exchange_and_vote(self, words: Array, counts: Array, votes: Array) -> tuple[Array, Array, Array]:
        """Return the words as if each rank had sent those for it, and its votes from every rank."""
        return words, counts, np.tile(votes, (self.size, 1))


def main() -> None:
    """Print a line for each number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", default="2,16,128,1024,16384", help="numbers of ranks")
    for size in map(int, parser.parse_args().ranks.split(",")):
        taken = [1000 * seconds for seconds in _exchanges(size)]
        print(f"{size:6d} ranks: best {min(taken):.2f} ms, median {statistics.median(taken):.2f} ms")


def _exchanges(size: int) -> list[float]:
    loop = _loop()
    [part] = loop.parts.values()
    part.ghosts.add(np.arange(1000, 1000 + _ROWS), count=_ROWS)
    part.grow_ghosts()
    part.ghost_owner[:_ROWS] = np.random.default_rng(1).integers(1, size, _ROWS)
    part.ghost_remote[:_ROWS] = 0
    loop.comm = ManyRanks(size)
    exchange = DeltaExchange(loop, lambda *_: None)
    taken = []
    for _ in range(_TIMES):
        ghost = part.ghost
        ghost.d[:_ROWS], ghost.n[0] = np.arange(_ROWS), _ROWS
        ghost.f[:_ROWS] |= QUEUED
        started_at = time.perf_counter()
        sum_votes(exchange.run(votes(loop, 1.0)))
        taken.append(time.perf_counter() - started_at)
    return taken


def _loop() -> LoopState:
    resolved = resolve_text(parse(_TEXT), _COLUMNS)
    facts_of_text = {n for n, source in enumerate(resolved.sources) if not source.is_external}
    plan = compile_program(whole_program(resolved.program, facts_of_text))
    facts = Facts.for_stratum(plan.strata[-1], {i.id: i for i in plan.inputs}, 1)
    words = np.arange(100, dtype=np.int64)
    tables = {
        n: Table(tuple(Column(type_of(e.type), words, None, None) for e in i.exprs), len(words))
        for n, i in facts.inputs.items()
    }
    builder = LoopBuilder(facts, Inputs(tables, Strings(pa.array([], pa.string()))), SingleRank(), 1, ansi=True)
    return builder.build(builder.route())


if __name__ == "__main__":
    main()
