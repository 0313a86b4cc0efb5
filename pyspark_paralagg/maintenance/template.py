"""Substitute rows for the reads of a plan that was analysed over references.

An incremental refresh substitutes, for one *read* of a changed source at a time, the new rows alone. A source that is
read twice is thus substituted twice: with ΔE and the new E,

    E ⋈ d ⋈ E   gains   ΔE ⋈ d ⋈ E  and  E ⋈ d ⋈ ΔE

This holds if no operator above a read removes rows when its input gets new rows (`Reads.scala`). Of a union, only the
branch with that read is computed: the other branches derive nothing new from it.

A *negated* read is on the right side of an anti join. What changes there are the rows of the left side that meet a
changed row: with N after the change, and its new rows ΔN or the ones that left, ∇N,

    d ▷ N   loses   d ⋉ ΔN      and gains   (d ⋉ ∇N) ▷ N

If the right side reads several sources, ΔN and ∇N come from one read at a time, with all rows that there are or were of
the others. That may be too many: what is lost without need is derived again, and what is gained is tested against N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark_paralagg.lowering.joins import differing
from pyspark_paralagg.maintenance.recursion import SOURCE
from pyspark_paralagg.session.attach import Shim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from pyspark_paralagg.maintenance.recursion import Frames

Reading: TypeAlias = "Callable[[Read], DataFrame]"
"""The rows for each read."""


@dataclass(frozen=True)
class Read:
    """One read of a reference: the operators above it that block or merge its rows, and its branch of each union.

    ``negated``: its only blocker is an anti join. ``side`` is the number of the first anti join that has it on its
    right side. ``rowwise``: operators between it and the recursion take each row alone.
    """

    name: str
    blocker: str | None
    negated: bool
    side: int | None
    merger: str | None
    rowwise: bool
    branches: Mapping[str, int]

    @property
    def source(self) -> str | None:
        """Return the source that is read; None for a relation of the recursion."""
        return self.name.removeprefix(SOURCE) if self.name.startswith(SOURCE) else None

    def is_beside(self, other: Read) -> bool:
        """Return whether the two reads are in different branches of a union."""
        return any(other.branches.get(union, child) != child for union, child in self.branches.items())


@dataclass(frozen=True)
class Template:
    """An analysed plan over references, with its reads in order."""

    df: DataFrame
    reads: tuple[Read, ...]
    facts: Mapping[str, Any]

    def fill(self, rows: Reading) -> DataFrame:
        """Return the plan with ``rows`` substituted for each read."""
        return Shim(self.df.sparkSession).substitute(self.df, [rows(read) for read in self.reads])

    def changed(self, rows: Frames) -> list[tuple[Read, DataFrame]]:
        """Return the reads of sources of which there are ``rows``, with them."""
        return [(read, rows[read.source]) for read in self.reads if read.source is not None and read.source in rows]

    def with_new(self, read: Read, new: DataFrame, rows: Reading) -> DataFrame:
        """Return what the plan derives from the rows ``new`` of one read, and ``rows`` of the others."""
        return self.fill(_beside(read, rows, new))

    def rejected(self, negated: Read, by: DataFrame, rows: Reading, most: Reading, *, now: bool) -> DataFrame:
        """Return what the plan would derive if rows ``by`` of a negated read did not reject it in their anti join.

        They reject it together with ``most`` rows of the other reads on that side. ``now``: of that, what all ``rows``
        on that side do not reject, since the rows ``by`` have left.
        """
        beside = _beside(negated, rows, rows(negated))
        frames = [rows(read) if read.side == negated.side else beside(read) for read in self.reads]
        on_side = _beside(negated, most, by)
        changed = [on_side(r) if r.side == negated.side else rows for r, rows in zip(self.reads, frames, strict=True)]
        at = next(n for n, read in enumerate(self.reads) if read is negated)
        return Shim(self.df.sparkSession).turn(self.df, frames, at, changed, lets=now)


def reading(frames: Frames, stored: Frames) -> Reading:
    """Read all rows of the sources and of the result."""
    return lambda read: stored[read.name] if read.source is None else frames[read.source]


def reading_before(frames: Frames, inserted: Frames, deleted: Frames, stored: Frames) -> Reading:
    """Read at least all rows that the sources ``frames`` had before a change; of negated ones, none that they had not.

    So a plan derives at least what it derived then.
    """
    most = reading_most(frames, deleted, stored)

    def rows(read: Read) -> DataFrame:
        if read.source is None or not read.negated:
            return most(read)
        now = frames[read.source]
        return differing(now, inserted[read.source], now.columns) if read.source in inserted else now

    return rows


def reading_most(frames: Frames, deleted: Frames, stored: Frames) -> Reading:
    """Read all rows that there are or were."""

    def rows(read: Read) -> DataFrame:
        if read.source is None:
            return stored[read.name]
        now = frames[read.source]
        return now.unionByName(deleted[read.source]) if read.source in deleted else now

    return rows


def united(*parts: Frames) -> dict[str, DataFrame]:
    """Return the rows of all parts, by relation."""
    found: dict[str, DataFrame] = {}
    for part in parts:
        for name, rows in part.items():
            found[name] = found[name].unionAll(rows) if name in found else rows
    return found


def _beside(changed: Read, rows: Reading, new: DataFrame) -> Reading:
    """Read ``new`` at ``changed``, no rows in other branches of its unions, and ``rows`` elsewhere."""

    def substitute(read: Read) -> DataFrame:
        if read is changed:
            return new
        return rows(read).limit(0) if read.is_beside(changed) else rows(read)

    return substitute
