"""Report what a refresh did, and what the next one would do, as text and as JSON.

``refresh`` creates the first, ``view`` the second.
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
    """Versions of a source: the consumed one (None: none yet), and the newest one."""

    consumed: int | None
    newest: int

    def __str__(self) -> str:
        """Return ``3 -> 5``, or ``5`` if both are the same."""
        if self.consumed == self.newest:
            return f"{self.newest}"
        return f"{'nothing' if self.consumed is None else self.consumed} -> {self.newest}"


@dataclass(frozen=True)
class RefreshReport:
    """The report of one ``refresh()``.

    ``kind`` is ``"full"``, ``"incremental"`` or ``"none"``, and ``reason`` is the first reason for it. ``sources`` has
    the version of each source that was consumed before, and the newest one. ``inserted``, ``updated`` and ``deleted``
    count rows of the target; a full refresh inserts all rows. ``version`` is the version of the target that was
    written, None if nothing was written. ``seconds`` has ``changes`` (versions, feeds, the decision, and an incremental
    refresh that was given up), ``fixpoint`` (the rows that fall, joining the new rows with the stored result, and the
    iterations from there) and ``write``. A full refresh on the Spark engine computes while it writes, so its fixpoint
    is in ``write``. ``run`` is the report of the fixpoint, None if none ran. ``loaded`` says whether an incremental
    refresh on the Spark engine has read all rows of the sources or only changed ones, and why; it is empty for others.
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
    deleted: int = 0
    loaded: str = ""

    @property
    def iterations(self) -> int:
        """Return the number of applications of the step."""
        return 0 if self.run is None else self.run.iterations

    def to_json(self) -> str:
        """Return the report as one JSON object."""
        run = None if self.run is None else json.loads(self.run.to_json())
        sources = {name: asdict(versions) for name, versions in self.sources.items()}
        fields = {
            name: getattr(self, name)
            for name in ("target", "kind", "reason", "inserted", "updated", "deleted", "version", "loaded")
        }
        seconds = dict(self.seconds)
        return json.dumps({**fields, "iterations": self.iterations, "sources": sources, "seconds": seconds, "run": run})

    def __repr__(self) -> str:
        """Return some lines of text."""
        version = "nothing written" if self.version is None else f"version {self.version} written"
        rows = f"{self.inserted:,} rows inserted, {self.updated:,} updated, {self.deleted:,} deleted"
        spent = ", ".join(f"{name} {value:.3f} s" for name, value in self.seconds.items())
        return (
            f"{self.kind} refresh of {self.target}: {version}\n"
            f"  why {self.kind}: {self.reason}\n"
            f"  sources: {_format_sources(self.sources)}\n"
            + (f"  loaded: {self.loaded}\n" if self.loaded else "")
            + f"  {rows}, {self.iterations} iterations\n"
            f"  time: {spent}"
        )


@dataclass(frozen=True)
class Status:
    """The kind of the next ``refresh()`` and the reason for it. To get it, only the sources' change feeds are read.

    ``pending`` counts the changed rows by source and kind (``insert``, ``delete``, ...), for sources with a feed.
    """

    target: str
    kind: Kind
    reason: str
    sources: Mapping[str, SourceVersions]
    pending: Mapping[str, Mapping[str, int]]

    def __repr__(self) -> str:
        """Return some lines of text."""
        rows = "; ".join(f"{s}: {', '.join(f'{n:,} {k}' for k, n in c.items())}" for s, c in self.pending.items())
        return (
            f"{self.target}: the next refresh is {self.kind}\n"
            f"  why: {self.reason}\n"
            f"  sources: {_format_sources(self.sources)}\n"
            f"  pending: {rows or 'no changes in a change feed'}"
        )


def _format_sources(sources: Mapping[str, SourceVersions]) -> str:
    return ", ".join(f"{name} {versions}" for name, versions in sources.items())
