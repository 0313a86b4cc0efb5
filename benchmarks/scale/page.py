"""Write docs/scale.md and its pictures from stored counts and costs: ``python -m benchmarks.scale.page``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np

from benchmarks.datasets import DEFAULT_CACHE, PROJECT
from benchmarks.scale.costs import PARTS, stored
from benchmarks.scale.figures import PICTURES, Model
from benchmarks.scale.programs import QUERIES
from benchmarks.scale.study import (
    BALANCED,
    BALANCED_OF,
    FINER,
    GOALS,
    LARGE,
    RANKS,
    SCALED,
    STRONG,
    counted,
    goal_placements,
    placed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = PROJECT / "docs" / "scale.md"
TEMPLATE = Path(__file__).parent / "template.md"
STRUCTURES = DEFAULT_CACHE / "scale" / "structures.md"
"""What ``python -m benchmarks.structures`` has printed, put there by hand."""
_WITHIN = 0.2
_LIMITS = {LARGE: 2.1}
_LIMIT = 1.3


def costs(model: Model) -> Iterator[str]:
    """Yield the rows of fitted costs."""
    yield "| query | fitted on | ns an edge | ns a row | µs a round: 1 rank | 2 | 4 |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for name, c in model.costs.items():
        if name != "join":
            idle = " | ".join(f"{1e6 * c.rounds[n]:.0f}" for n in (1, 2, 4))
            fitted = next(check["graph"] for check in model.checks if check["query"] == name)
            yield f"| {QUERIES[name].title} | {fitted} | {1e9 * c.edge:.1f} | {1e9 * c.row:.1f} | {idle} |"


def checks(model: Model) -> Iterator[str]:
    """Yield for each query and graph how far the model is off, by number of ranks."""
    yield "| query | graph | 1 rank | 2 | 3 | 4 | 5 | within 20 % |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for query, graph in dict.fromkeys((c["query"], c["graph"]) for c in model.checks):
        errors = [c["error"] for c in model.checks if (c["query"], c["graph"]) == (query, graph)]
        within = sum(abs(e) <= _WITHIN for e in errors)
        shown = " | ".join(f"{100 * e:+.0f} %" for e in errors)
        yield f"| {QUERIES[query].title} | {graph} | {shown} | {within} of {len(errors)} |"


def reached(model: Model) -> str:
    """Return how many checks are within 20 %."""
    parts = []
    for name, is_other in (("those of the fitted graph", False), ("those of other graphs", True)):
        errors = [c["error"] for c in model.checks if (c["graph"] != _fitted(model, c["query"])) == is_other]
        parts.append(f"{sum(abs(e) <= _WITHIN for e in errors)} of {len(errors)} of {name}")
    return " and ".join(parts)


def _fitted(model: Model, query: str) -> str:
    return str(next(check["graph"] for check in model.checks if check["query"] == query))


def goals(_: Model) -> Iterator[str]:
    """Yield max/avg of edges and of work at 16,384 ranks, by placement."""
    columns = (*BALANCED, FINER)
    yield f"| query, graph | goal | {' | '.join(columns)} | reached by |"
    yield "|---|--:|" + "--:|" * len(columns) + "---|"
    for query, graph in GOALS:
        edges = {p: placed((query, graph, p), 16384) for p in goal_placements(graph)}
        limit = _LIMITS.get(graph, _LIMIT)
        by = ", ".join(p for p, e in edges.items() if round(e, 2) <= limit) or "none"
        shown = " | ".join(f"{edges[p]:,.2f}" if p in edges else "" for p in columns)
        yield f"| {QUERIES[query].title}, {graph} | {limit} | {shown} | {by} |"


def balances(_: Model) -> Iterator[str]:
    """Yield max/avg of edges, work, rows and bytes on the large graph."""
    yield "| query, graph | placement | ranks | edges | work | rows | bytes | MB sent | messages of a rank |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for query, placements in BALANCED_OF.items():
        for placement in placements:
            for ranks in (1024, 16384):
                m, edges, _sorted = counted((query, STRONG[query][0], placement), ranks)
                shown = " | ".join(f"{m.balance(x):.2f}" for x in ("work", "rows", "bytes"))
                sent = f"{m.total['bytes'].sum() / 1e6:,.0f} | {m.most['partners'].max():,}"
                graph = STRONG[query][0]
                yield f"| {QUERIES[query].title}, {graph} | {placement} | {ranks:,} | {edges:.2f} | {shown} | {sent} |"


def bottlenecks(model: Model) -> Iterator[str]:
    """Yield seconds, efficiency, and the part that takes most, by query and ranks."""
    ranks = [n for n in RANKS if n > 1]
    yield "| query, graph, placement | 1 rank, s | " + " | ".join(f"{n:,}: ms, efficiency, most" for n in ranks) + " |"
    yield "|---|--:|" + "--:|" * len(ranks)
    cases = [(q, graph, placement) for q, (graph, placement) in STRONG.items()]
    for case in (*cases, *((q, g, "source") for q, g in SCALED)):
        alone = model.seconds((case[0], case[1], "source"), 1)
        cells = []
        for n in ranks:
            parts = {name: float(s.sum()) for name, s in model.parts(case, n).items()}
            whole = sum(parts.values())
            most = max(PARTS, key=parts.__getitem__)
            cells.append(
                f"{1e3 * whole:.1f}, {100 * alone / whole / n:.2g} %, {most} ({100 * parts[most] / whole:.0f} %)"
            )
        yield f"| {QUERIES[case[0]].title}, {case[1]}, {case[2]} | {alone:.3f} | " + " | ".join(cells) + " |"


def naive(_: Model) -> Iterator[str]:
    """Yield the edges visited by naive evaluation and by differences (003, figure 10)."""
    yield "| query, graph | rounds | edges visited, all rows in each round | changed rows only | ratio |"
    yield "|---|--:|--:|--:|--:|"
    for query in ("sssp", "components", "reach"):
        m, _balance, edges = counted((query, STRONG[query][0], "source"), 1)
        count, visited = len(m.most["work"]), int(m.total["work"].sum())
        every, graph = count * int(edges.sum()), STRONG[query][0]
        yield f"| {QUERIES[query].title}, {graph} | {count} | {every:,} | {visited:,} | {every / visited:.1f} |"


def medium(model: Model) -> Iterator[str]:
    """Yield shortest paths and components on 256 and 512 ranks (000, table II); closures on 8,192 (001, table 1)."""
    yield "| query, graph | rounds | rows | 256 ranks, s | 512 ranks, s | 8,192 ranks, s |"
    yield "|---|--:|--:|--:|--:|--:|"
    for query, graph in SCALED:
        case = (query, graph, "source")
        m = counted(case, 1)[0]
        seconds = " | ".join(f"{model.seconds(case, n):.4f}" for n in (256, 512, 8192))
        yield f"| {QUERIES[query].title}, {graph} | {len(m.most['work'])} | {m.total['changed'].sum():,} | {seconds} |"


TABLES = {f.__name__: f for f in (costs, checks, goals, balances, bottlenecks, naive, medium)}


def main() -> None:
    """Write the page and draw the pictures."""
    model = Model(*stored())
    tables = {name: "\n".join(table(model)) for name, table in TABLES.items()}
    network = f"{1e3 * model.network.meeting(16384):.2f}"
    worst = f"{100 * max(np.abs([c['error'] for c in model.checks])):.0f}"
    structures = STRUCTURES.read_text(encoding="utf-8")
    spread = {}
    for name, placement in (("source", "source"), ("sub", "sub-buckets-8"), ("hybrid", "hybrid")):
        edges = counted(("sssp", LARGE, placement), 4096)[2]
        spread[f"spread_{name}"] = f"{edges[-1] / edges[0]:.1f}"
    for name, placement in (("rows_up", "source"), ("rows_up_sub", "sub-buckets-4")):
        spread[name] = f"{counted(('closure', 'up-16', placement), 512)[0].balance('rows'):.0f}"
    page = TEMPLATE.read_text(encoding="utf-8").format(
        **tables, **spread, structures=structures, reached=reached(model), network=network, worst=worst
    )
    PAGE.write_text(page, encoding="utf-8")
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "scale", "font.size": 8.5}):
        for name, draw in PICTURES.items():
            draw(model).savefig(PAGE.parent / "images" / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
