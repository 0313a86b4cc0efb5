"""The cost of counts in seconds: fitted to CPU time of real ranks, used to predict that of others.

CPU time of a round, on the rank with most, is ``round(P) + edge * max(edges visited) + row * max(rows)``. Rows are
those that changed, were sent or were received. ``round(P)``, a round without work, is measured apart. Of the network
nothing is measured: ``Network`` has what is assumed.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.scale.counts import measure
from benchmarks.scale.graphs import make
from benchmarks.scale.measured import run_cases
from benchmarks.scale.pairs import count, replay
from benchmarks.scale.placement import place
from benchmarks.scale.programs import QUERIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.scale.counts import Measures
    from mpi_backend.kernels.compiler import Array

Case = tuple[str, str, str]
FILE = Path(__file__).parent / "costs.json"


@dataclass(frozen=True)
class Costs:
    """Seconds of a round by number of ranks, of an edge that is visited, and of a row that changes or travels."""

    rounds: dict[int, float]
    edge: float
    row: float

    def round(self, ranks: int) -> float:
        """Return the seconds of a round without work; of more ranks than were measured, those of two."""
        return self.rounds.get(ranks, self.rounds[2])

    def compute(self, m: Measures) -> Array:
        """Return the CPU seconds of each round on the rank with most."""
        seconds: Array = self.round(m.ranks) + self.edge * m.most["work"] + self.row * m.most["rows"]
        return seconds


@dataclass(frozen=True)
class Network:
    """An assumed network: seconds of a message, bytes a second of a rank; ``engine`` are measured seconds by ranks.

    A meeting is ``Alltoall`` of ``head_bytes`` for each rank, in log2(P) steps of half of them each.
    """

    engine: dict[int, float]
    latency: float = 2e-6
    bandwidth: float = 1e9
    head_bytes: int = 72

    def meeting(self, ranks: int) -> float:
        """Return the seconds of an exchange without rows."""
        if ranks == 1:
            return 0.0
        known = sorted(self.engine)
        engine = float(np.interp(ranks, known, [self.engine[n] - self.engine[2] for n in known]))  # round(2) has it
        return engine + math.log2(ranks) * (self.latency + self.head_bytes * ranks / 2 / self.bandwidth)


PARTS = ("edges", "rows", "meetings", "bytes")


def times(m: Measures, costs: Costs, network: Network) -> dict[str, Array]:
    """Return the seconds of each round in each of the ``PARTS``."""
    return {
        "edges": costs.edge * m.most["work"],
        "rows": costs.row * m.most["rows"],
        "meetings": np.full(len(m.most["work"]), costs.round(m.ranks) + network.meeting(m.ranks)),
        "bytes": m.most["bytes"] / network.bandwidth,
    }


def stored() -> tuple[dict[str, Costs], Network, list[dict[str, Any]]]:
    """Return what ``fit`` has written: the costs by query, the network, and the checks."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    costs = {
        q: Costs({int(n): s for n, s in c["round"].items()}, c["edge"], c["row"]) for q, c in found["queries"].items()
    }
    return costs, Network({int(n): s for n, s in found["engine"].items()}), found["checks"]


@dataclass(frozen=True)
class Sample:
    """A run on real ranks: the model's measures, and the CPU seconds of each round on the rank with most."""

    case: Case
    ranks: int
    measures: Measures
    seconds: Array


def measures_of(case: Case, ranks: int) -> Measures:
    """Return the counts of a case (query, graph, placement)."""
    query, graph = QUERIES[case[0]], make(case[1])
    rounds = replay(query, graph)
    return measure(count(rounds, place(case[2], ranks, query, graph, rounds.edges)), ranks, query.row_words)


def run_samples(cases: Sequence[Case], ranks: Sequence[int], repeat: int) -> list[Sample]:
    """Run the cases on real ranks. Each round of each rank counts with the least CPU time of ``repeat`` runs."""
    samples = []
    for n in ranks:
        for case, measured in run_cases(cases, n, repeat).items():
            m = measures_of(case, n)
            samples.append(Sample(case, n, m, measured.seconds.max(axis=1)[: len(m.most["work"])]))
    return samples


def fit(samples: Sequence[Sample], rounds: dict[int, float]) -> Costs:
    """Fit the costs of edges and rows to the rounds by least squares. No cost is negative."""
    counts = [np.concatenate([s.measures.most[name] for s in samples]) for name in ("work", "rows")]
    seconds = np.concatenate([s.seconds - rounds[s.ranks] for s in samples])
    edge, row = map(float, _solve(np.column_stack(counts), seconds))
    return Costs(rounds, edge, row)


def _solve(counts: Array, seconds: Array) -> Array:
    scale = counts.max(axis=0)
    found: Array = nnls(counts / scale, seconds)[0] / scale
    return found


def error(costs: Costs, sample: Sample) -> float:
    """Return the relative error of the predicted sum over all rounds."""
    return float(costs.compute(sample.measures).sum() / sample.seconds.sum() - 1)
