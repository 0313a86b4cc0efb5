"""What a refresh writes into its commit beside the rows, and what is found of it later.

The record is the commit's ``userMetadata``, so rows and record are there together or not at all. The table also keeps
the number of the last refresh (a transaction of its own, ``APPLICATION``): by that a table is known as ours even where
the log is no longer kept, and two refreshes at once cannot both win.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_paralagg.delta.tables import Commit, Table

APPLICATION = "pyspark-paralagg recursive table"
_FORMAT = 1
_KEY = "paralagg_refresh"

_HARMLESS = frozenset(
    {
        "OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "ADD CONSTRAINT",
        "DROP CONSTRAINT", "CLUSTER BY", "REORG", "UPGRADE PROTOCOL", "ADD FEATURE", "DROP FEATURE", "COMPUTE STATS",
    }
)  # fmt: skip
"""Operations of other writers that leave the rows as they are."""


@dataclass(frozen=True)
class Consumed:
    """A source at the moment that a refresh has seen."""

    id: str
    version: int
    columns: dict[str, str]


@dataclass(frozen=True)
class Record:
    """What one refresh consumed.

    ``read`` is the target's version that it continued or replaced (-1: there was none). ``obstacle`` says why a later
    refresh of this program cannot continue from here, None where it can.
    """

    kind: str
    reason: str
    fingerprint: str
    obstacle: str | None
    read: int
    sources: dict[str, Consumed]
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_json(self) -> str:
        """What is written as the commit's ``userMetadata``."""
        return json.dumps({_KEY: _FORMAT, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | None) -> Record | None:
        """The record in a commit's ``userMetadata``; None where that is something else, or of another format."""
        try:
            data = json.loads(text or "null")
        except ValueError:
            return None
        if not isinstance(data, dict) or data.pop(_KEY, None) != _FORMAT:
            return None
        sources = {name: Consumed(**consumed) for name, consumed in data.pop("sources").items()}
        return cls(**data, sources=sources)


@dataclass(frozen=True)
class Last:
    """The newest refresh of a table, and the first commit of somebody else that its rows do not know of."""

    commit: Commit
    record: Record
    foreign: Commit | None


def last_refresh(target: Table, version: int) -> Last | None:
    """The newest commit with a record up to ``version``; None where the log has none (any more)."""
    later: list[Commit] = []
    found: tuple[Commit, Record] | None = None
    for commit in target.commits(version):
        if found is not None and commit.version <= found[1].read:
            break
        record = Record.from_json(commit.user_metadata)
        if found is None and record is not None:
            found = commit, record
        elif commit.operation not in _HARMLESS:
            later.append(commit)
    if found is None:
        return None
    return Last(*found, later[-1] if later else None)


def refreshes(target: Table) -> list[tuple[Commit, Record, Any]]:
    """All commits with a record and when they were made, newest first."""
    found = ((commit, Record.from_json(commit.user_metadata), made) for commit, made in target.history())
    return [(commit, record, made) for commit, record, made in found if record is not None]
