"""What a refresh did, and what the next one would do: for people, and as JSON.

Last station of ``delta``: ``view`` fills both.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.report.run_report import RunReport

Kind = Literal["full", "incremental", "none"]


@dataclass(frozen=True)
class SourceVersions:
    """Versions of a source: what is consumed (None: nothing yet), and the newest one."""

    consumed: int | None
    newest: int

    def __str__(self) -> str:
        """``3 -> 5``."""
        if self.consumed == self.newest:
            return f"{self.newest}"
        return f"{'nothing' if self.consumed is None else self.consumed} -> {self.newest}"


@dataclass(frozen=True)
class RefreshReport:
    """The report of one ``refresh()``.

    ``kind`` is ``"full"``, ``"incremental"`` or ``"none"``, ``reason`` the first reason for it. ``sources`` has the
    versions consumed before and now. ``inserted`` and ``updated`` count rows of the target (a full refresh inserts all
    of them). ``version`` is the target's version that was written, None where nothing was. ``seconds`` has ``changes``
    (versions, feeds, what to do), ``fixpoint`` (new rows met with the stored result, and on from there) and ``write``;
    a full refresh on the Spark engine computes while it writes, so its fixpoint is in ``write``. ``run`` is the
    fixpoint's own report, None where there was none.
    """

    target: str
    kind: Kind
    reason: str
    sources: Mapping[str, SourceVersions]
    inserted: int
    updated: int
    seconds: Mapping[str, float]
    version: int | None = None
    run: RunReport | None = None

    @property
    def iterations(self) -> int:
        """Applications of the step."""
        return 0 if self.run is None else self.run.iterations

    def to_json(self) -> str:
        """The report as one JSON object."""
        run = None if self.run is None else json.loads(self.run.to_json())
        sources = {name: asdict(versions) for name, versions in self.sources.items()}
        shown = {name: getattr(self, name) for name in ("target", "kind", "reason", "inserted", "updated", "version")}
        seconds = dict(self.seconds)
        return json.dumps({**shown, "iterations": self.iterations, "sources": sources, "seconds": seconds, "run": run})

    def __repr__(self) -> str:
        """Some lines for a person."""
        wrote = "nothing written" if self.version is None else f"version {self.version} written"
        rows = f"{self.inserted:,} rows inserted, {self.updated:,} updated, {self.iterations} iterations"
        spent = ", ".join(f"{name} {value:.3f} s" for name, value in self.seconds.items())
        return (
            f"{self.kind} refresh of {self.target}: {wrote}\n"
            f"  why {self.kind}: {self.reason}\n"
            f"  sources: {_shown(self.sources)}\n"
            f"  {rows}\n"
            f"  time: {spent}"
        )


@dataclass(frozen=True)
class Status:
    """What the next ``refresh()`` would do, and why; nothing has run but a look at the sources' change feeds.

    ``pending`` counts the changed rows by source and kind (``insert``, ``delete``, ...), where a feed tells.
    """

    target: str
    kind: Kind
    reason: str
    sources: Mapping[str, SourceVersions]
    pending: Mapping[str, Mapping[str, int]]

    def __repr__(self) -> str:
        """Some lines for a person."""
        rows = "; ".join(f"{s}: {', '.join(f'{n:,} {k}' for k, n in c.items())}" for s, c in self.pending.items())
        return (
            f"{self.target}: the next refresh is {self.kind}\n"
            f"  why: {self.reason}\n"
            f"  sources: {_shown(self.sources)}\n"
            f"  pending: {rows or 'no rows that a feed tells of'}"
        )


def _shown(sources: Mapping[str, SourceVersions]) -> str:
    return ", ".join(f"{name} {versions}" for name, versions in sources.items())
