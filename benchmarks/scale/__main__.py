"""Print the counts of a query on numbers of ranks: ``python -m benchmarks.scale sssp --graph rmat-16 --ranks 2,1024``.

``--iterations`` adds a line for each round. ``python -m benchmarks.scale page`` makes docs/scale.md anew.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from benchmarks.scale.counts import measure
from benchmarks.scale.graphs import make
from benchmarks.scale.pairs import count, replay
from benchmarks.scale.placement import PLACEMENTS, place
from benchmarks.scale.programs import QUERIES

if TYPE_CHECKING:
    from benchmarks.scale.counts import Measures

RANKS = "1,2,4,16,64,256,1024,4096,16384"
_HEADER = """\
| placement | ranks | rounds | edges max/avg | edges visited | max/avg | rows max/avg | MB sent | max/avg | partners |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("query", choices=QUERIES)
    parser.add_argument("--graph", default="rmat-16")
    parser.add_argument("--ranks", default=RANKS)
    parser.add_argument("--placement", default=",".join(PLACEMENTS), help="of " + ", ".join(PLACEMENTS))
    parser.add_argument("--iterations", action="store_true", help="print a line for each round")
    options = parser.parse_args()
    query, graph = QUERIES[options.query], make(options.graph)
    rounds = replay(query, graph)
    print(_HEADER)
    for name in options.placement.split(","):
        for ranks in map(int, options.ranks.split(",")):
            placement = place(name, ranks, query, graph, rounds.edges)
            measures = measure(count(rounds, placement), ranks, query.row_words)
            print(_line(name, measures, placement.edge_balance), flush=True)
            if options.iterations:
                print(*_rounds(measures), sep="\n", flush=True)


def _line(name: str, m: Measures, edge_balance: float) -> str:
    work, sent = int(m.total["work"].sum()), m.total["bytes"].sum() / 1e6
    numbers = f"{len(m.total['work'])} | {edge_balance:.2f} | {work:,} | {m.balance('work'):.2f}"
    exchanged = f"{m.balance('rows'):.2f} | {sent:,.1f} | {m.balance('bytes'):.2f} | {m.most['partners'].max()}"
    return f"| {name} | {m.ranks:,} | {numbers} | {exchanged} |"


def _rounds(m: Measures) -> list[str]:
    measures = ("work", "rows", "bytes", "partners")
    return [
        f"  {n + 1}: " + "; ".join(f"{name} max {m.most[name][n]:,} of {m.total[name][n]:,}" for name in measures)
        for n in range(len(m.total["work"]))
    ]


if __name__ == "__main__":
    main()
