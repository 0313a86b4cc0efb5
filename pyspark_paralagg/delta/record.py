"""Define the record that a refresh writes into its commit, and find it again in the table's log.

The record is the commit's ``userMetadata``, so a commit has rows and record, or neither. The table also has the number
of the last refresh, as transaction version of ``APPLICATION``. It identifies a maintained table even if the log has
been cleaned up, and only one of two concurrent refreshes can succeed.
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
"""Operations of other writers that do not change rows."""

_FORGETTING = 0.9
"""The factor of the seconds of deletes for each full refresh that does not try: data change, so one tries again."""


@dataclass(frozen=True)
class Consumed:
    """A source at the version that a refresh has read."""

    id: str
    version: int
    columns: dict[str, str]


@dataclass(frozen=True)
class Costs:
    """Seconds of the last full refresh, and of the last one that maintained deletes or tried to; None if not known.

    ``from_state`` is that of the last one that maintained deletes from a kept state; it is not one of ``deletes``.
    """

    full: float | None = None
    deletes: float | None = None
    from_state: float | None = None


@dataclass(frozen=True)
class Record:
    """The kind of one refresh, its reason, the program's fingerprint, and the source versions that it consumed.

    ``read`` is the target's version that it continued or replaced (-1: there was none). ``obstacle`` is the reason why
    the next refresh of this program cannot continue from this one, None if it can. It ``began`` so many seconds after
    1970, and spent ``wasted`` seconds on deletes that it then did not maintain. ``has_deletes``: sources lost rows, or
    there are several recursions, which cost as much. ``from_state``: it went on from a kept state. ``costs`` are those
    of earlier ones.
    """

    kind: str
    reason: str
    fingerprint: str
    obstacle: str | None
    read: int
    sources: dict[str, Consumed]
    began: float | None = None
    wasted: float = 0.0
    has_deletes: bool = False
    from_state: bool = False
    costs: Costs = Costs()
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_json(self) -> str:
        """Return the text for the commit's ``userMetadata``."""
        return json.dumps({_KEY: _FORMAT, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | None) -> Record | None:
        """Return the record in a commit's ``userMetadata``; None if the text is no record of this format."""
        try:
            data = json.loads(text or "null")
        except ValueError:
            return None
        if not isinstance(data, dict) or data.pop(_KEY, None) != _FORMAT:
            return None
        sources = {name: Consumed(**consumed) for name, consumed in data.pop("sources").items()}
        return cls(**{**data, "costs": Costs(**data.get("costs", {}))}, sources=sources)


@dataclass(frozen=True)
class LastRefresh:
    """The newest refresh of a table, and the first commit of another writer after the version that it read, if any."""

    commit: Commit
    record: Record
    foreign: Commit | None

    @property
    def costs(self) -> Costs:
        """Return what refreshes have cost up to this one: its commit is written when it has nearly ended."""
        record, written = self.record, self.commit.seconds
        spent = 0.0 if record.began is None or written is None else written - record.began
        if spent <= 0:  # clocks of two machines
            return record.costs
        full = spent - record.wasted if record.kind == "full" else record.costs.full
        deletes, from_state = record.costs.deletes, record.costs.from_state
        tried = bool(record.wasted) or (record.kind == "incremental" and record.has_deletes)
        if tried and record.from_state:
            from_state = spent
        elif tried:
            deletes = spent
        elif record.kind == "full":
            deletes, from_state = (None if cost is None else _FORGETTING * cost for cost in (deletes, from_state))
        return Costs(full, deletes, from_state)


def last_refresh(target: Table, version: int) -> LastRefresh | None:
    """Return the newest refresh up to ``version``; None if the log has no record, or no longer has it."""
    later: list[Commit] = []
    newest: tuple[Commit, Record] | None = None
    for commit in target.commits(version):
        if newest is not None and commit.version <= newest[1].read:
            break
        record = Record.from_json(commit.user_metadata)
        if newest is None and record is not None:
            newest = commit, record
        elif commit.operation not in _HARMLESS:
            later.append(commit)
    if newest is None:
        return None
    return LastRefresh(*newest, later[-1] if later else None)


def refreshes(target: Table) -> list[tuple[Commit, Record, Any]]:
    """Return all commits with a record, each with its timestamp, newest first."""
    commits = ((commit, Record.from_json(commit.user_metadata), timestamp) for commit, timestamp in target.history())
    return [(commit, record, timestamp) for commit, record, timestamp in commits if record is not None]
