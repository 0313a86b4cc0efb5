"""Fit costs to real ranks and write ``costs.json`` beside this file: ``python -m benchmarks.scale.fit``.

The cost of a round without work is measured on strings, at each number of ranks. Costs of edges and rows are fitted
on one graph at 1, 2 and 4 ranks. Then other graphs and numbers of ranks up to 5 are run and compared (``checks``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import many_ranks
from benchmarks.scale.costs import FILE, Costs, error, fit, run_samples

if TYPE_CHECKING:
    from benchmarks.scale.costs import Sample

FITTED_RANKS = (1, 2, 4)
ALL_RANKS = (1, 2, 3, 4, 5)
ENGINE_RANKS = (2, 16, 128, 1024, 4096, 16384)
_REPEAT = 6
IDLE = {"sssp": "string-200", "components": "string-100", "reach": "string-200", "pagerank": "string-50"}
IDLE |= {"closure": "string-40"}
FITTED = dict.fromkeys(("sssp", "components", "reach", "pagerank"), "rmat-16") | {"closure": "up-12"}
CHECKED: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("sssp", "components", "reach", "pagerank"), ("rmat-15", "rmat-14", "both-30000", "grid-100")
)
CHECKED |= {"closure": ("up-11", "down-12", "ring-200")}


def main() -> None:
    """Measure, fit and write; print how far predictions are off."""
    found: dict[str, Any] = {"queries": {}, "checks": []}
    cases = [(q, g, "source") for q, fitted in FITTED.items() for g in (IDLE[q], fitted, *CHECKED[q])]
    samples = {(s.case[0], s.case[1], s.ranks): s for s in run_samples(cases, ALL_RANKS, _REPEAT)}
    for query, graph in FITTED.items():
        rounds = {n: float(np.median(samples[query, IDLE[query], n].seconds)) for n in ALL_RANKS}
        costs = fit([samples[query, graph, n] for n in FITTED_RANKS], rounds)
        found["queries"][query] = {"round": rounds, "edge": costs.edge, "row": costs.row, "graph": graph}
        for checked in (graph, *CHECKED[query]):
            for n in ALL_RANKS:
                found["checks"].append(_check(costs, samples[query, checked, n]))
                print(found["checks"][-1], flush=True)
    found["engine"] = {n: min(many_ranks._exchanges(n)) for n in ENGINE_RANKS}  # noqa: SLF001 - its measurement
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _check(costs: Costs, sample: Sample) -> dict[str, Any]:
    return {
        "query": sample.case[0],
        "graph": sample.case[1],
        "ranks": sample.ranks,
        "measured": float(sample.seconds.sum()),
        "error": error(costs, sample),
    }


if __name__ == "__main__":
    main()
