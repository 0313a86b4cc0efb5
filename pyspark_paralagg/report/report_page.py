"""Render a ``RunReport`` as HTML: the executor and its reason, times, a plot of the deltas, a table of iterations.

``RunReport._repr_html_`` and ``explain(df, "html")`` use it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from pyspark_paralagg.report.page import Markup, escaped, folded, fragment, joined, paragraph, table

if TYPE_CHECKING:
    from collections.abc import Sequence


_COLUMNS = (
    "iteration",
    "relation",
    "changed rows",
    "rows",
    "seconds",
    "bytes",
    "balance",
    "work",
    "its balance",
)
_COUNTED = {"bytes": ",", "balance": ".2f", "work": ",", "work_balance": ".2f"}
"""The last columns: what not every executor counts, with its format."""
_SHOWN = 30
"""The largest number of rows of the table; of more rows, the first and the last are shown."""
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 680, 160, 56, 22, 8
_MAX_POINTS = 400
NOTHING = 0.5
"""The value at which an empty delta is drawn: below 1, because a logarithmic axis has no zero."""
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
"""Paul Tol's bright colours: colour-blind people can distinguish them, on light and on dark background."""


class ReportData(Protocol):
    """The parts of a ``RunReport`` that pages and plots read."""

    @property
    def backend(self) -> str: ...  # noqa: D102 - see RunReport
    @property
    def reason(self) -> str: ...  # noqa: D102
    @property
    def iterations(self) -> int: ...  # noqa: D102
    @property
    def tuples(self) -> int: ...  # noqa: D102
    @property
    def seconds(self) -> dict[str, float]: ...  # noqa: D102
    @property
    def rounds(self) -> tuple[dict[str, Any], ...]: ...  # noqa: D102
    @property
    def ranks(self) -> tuple[dict[str, Any], ...]: ...  # noqa: D102
    @property
    def balance(self) -> float | None: ...  # noqa: D102
    @property
    def work_balance(self) -> float | None: ...  # noqa: D102


def report_fragment(report: ReportData) -> str:
    """Return the report for a notebook's cell."""
    return fragment(report_body(report))


def report_body(report: ReportData) -> Markup:
    """Return the report without the frame of a page."""
    headline = Markup(f"<b>{escaped(report.backend)}</b>: {report.iterations:,} iterations, {report.tuples:,} rows")
    parts = [
        paragraph(headline),
        paragraph(escaped(f"why {report.backend}: {report.reason}"), is_quiet=True),
        paragraph(escaped(_spent(report))),
    ]
    if report.ranks:
        rows = [[f"{r.get('rank')}", f"{r.get('host')}", *_rank_cells(r)] for r in report.ranks]
        ranks = table(("rank", "host", "load s", "loop s", "memory MB"), rows, frozenset({1}))
        parts.append(folded(f"{len(report.ranks)} ranks", ranks))
    if report.rounds:
        parts += [
            _legend(_relations(report.rounds)),
            _deltas(report.rounds),
            folded("Iterations", _iterations(report.rounds), is_open=len(report.rounds) <= _SHOWN),
        ]
    else:
        parts.append(paragraph(escaped("This run did not count its iterations."), is_quiet=True))
    return joined(parts)


def _spent(report: ReportData) -> str:
    spent = ", ".join(f"{name} {value:.3f} s" for name, value in report.seconds.items())
    if report.balance is not None:
        spent += f"; the heaviest task changed {report.balance:.2f} times the average"
    if report.work_balance is not None:
        spent += f"; the heaviest task read {report.work_balance:.2f} times the average of the joined rows"
    return spent


def _shown(number: float | None, form: str) -> str:
    return "" if number is None else format(number, form)


def _rank_cells(rank: dict[str, Any]) -> list[str]:
    seconds = rank.get("seconds", {})
    return [f"{seconds.get(p, 0):.3f}" for p in ("load", "loop")] + [f"{(rank.get('memory') or 0) >> 20:,}"]


def _iterations(rounds: Sequence[dict[str, Any]]) -> Markup:
    def cells(row: dict[str, Any]) -> list[str]:
        numbers = [f"{row['delta']:,}", f"{row['total']:,}", f"{row['seconds']:.4f}"]
        counted = [_shown(row.get(name), form) for name, form in _COUNTED.items()]
        return [f"{row['iteration']:,}", row["relation"], *numbers, *counted]

    table_rows = [cells(r) for r in rounds] if len(rounds) <= _SHOWN else []
    if not table_rows:
        half = _SHOWN // 2
        left_out = ["…", f"{len(rounds) - 2 * half:,} more", *[""] * (len(_COLUMNS) - 2)]
        table_rows = [*map(cells, rounds[:half]), left_out, *map(cells, rounds[-half:])]
    return table(_COLUMNS, table_rows, frozenset({1}))


def _relations(rounds: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(r["relation"] for r in rounds))


def _colour(n: int) -> str:
    return COLOURS[n % len(COLOURS)]


def _legend(relations: Sequence[str]) -> Markup:
    """Return the legend. It is outside the plot because SVG does not break lines, and names may be long and many."""
    entries = (
        f'<span><i style="border-color:{_colour(n)}"></i>{escaped(name)}</span>' for n, name in enumerate(relations)
    )
    return Markup(f'<p class="legend">changed rows: {"".join(entries)}</p>')


def _deltas(rounds: Sequence[dict[str, Any]]) -> Markup:
    """Return a plot of the rows that each iteration changed: a line for each relation, on a logarithmic scale."""
    last = max(r["iteration"] for r in rounds)
    decades = max(1, math.ceil(math.log10(max(1, *(int(r["delta"]) for r in rounds)))))

    def x(iteration: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - 12) * float((iteration - 1) / max(1, last - 1))

    def y(delta: int) -> float:
        part = (math.log10(max(delta, NOTHING)) - math.log10(NOTHING)) / (decades - math.log10(NOTHING))
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - part)

    out = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" font-size="11" fill="currentColor">',
        "<title>rows changed by each iteration</title>",
    ]
    for power in range(0, decades + 1, max(1, decades // 4)):
        level = y(10**power)
        out.append(f'<path d="M{_LEFT} {level:.1f}H{_WIDTH - 12}" stroke="currentColor" stroke-opacity=".15"/>')
        out.append(f'<text x="{_LEFT - 6}" y="{level + 4:.1f}" text-anchor="end">{_short(10**power)}</text>')
    for n, name in enumerate(_relations(rounds)):
        colour = _colour(n)
        points = thinned([(r["iteration"], r["delta"]) for r in rounds if r["relation"] == name])
        path = "L".join(f"{x(i):.1f} {y(d):.1f}" for i, d in points)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>')
        if len(points) <= _MAX_POINTS // 10:
            out += [f'<circle cx="{x(i):.1f}" cy="{y(d):.1f}" r="2.6" fill="{colour}"/>' for i, d in points]
    out.append(f'<text x="{_LEFT}" y="{_HEIGHT - 6}">iteration 1</text>')
    if last > 1:
        out.append(f'<text x="{x(last):.1f}" y="{_HEIGHT - 6}" text-anchor="end">{last:,}</text>')
    return Markup("".join([*out, "</svg>"]))


def thinned(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Reduce many points: keep the smallest and the largest of each stretch of iterations, in their order.

    >>> thinned([(1, 5), (2, 3)])
    [(1, 5), (2, 3)]
    """
    if len(points) <= _MAX_POINTS:
        return points
    stretch = -(-len(points) // (_MAX_POINTS // 2))
    reduced = []
    for low in range(0, len(points), stretch):
        part = points[low : low + stretch]
        reduced += sorted({min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])})
    return reduced


def _short(number: int) -> str:
    for size, unit in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if number >= size:
            return f"{number // size}{unit}"
    return str(number)
