"""The campaign's table, by engine and fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from campaigns.faults.run import Result

_HEAD = (
    "engine",
    "fault",
    "runs",
    "right",
    "coded errors",
    "lost with the driver",
    "too late",
    "slowest, s",
    "failures",
)


def table(results: Sequence[Result]) -> str:
    """Return Markdown. A fault that found no target before the end was too late."""
    rows = [_HEAD, ("---", "---", *["--:"] * 7)]
    kinds = list(dict.fromkeys((r.case.engine, r.case.fault) for r in sorted(results, key=lambda r: r.case.number)))
    for engine, fault in sorted(kinds, key=lambda kind: kind[1]):
        of = [r for r in results if (r.case.engine, r.case.fault) == (engine, fault)]
        rows.append((engine, fault, *_counts(of)))
    rows.append(("**all**", "", *_counts(results)))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _counts(results: Sequence[Result]) -> list[str]:
    hit = [r for r in results if r.is_hit]
    kinds = [r.outcome.kind for r in hit]
    counts = [len(results), *(kinds.count(kind) for kind in ("right", "error", "lost")), len(results) - len(hit)]
    slowest = max((r.seconds for r in hit), default=0.0)
    return [*map(str, counts), f"{slowest:.1f}", str(sum(bool(r.problems) for r in results))]
