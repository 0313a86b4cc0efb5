"""Looks at the processes below this one: which are stopped, which have lost their parent.

For the supervisor and for a guard. On Linux; elsewhere nothing is found. Hydra itself notices neither a stopped process
nor a killed proxy: its ranks would run on without end.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_backend.launch import leftovers, process_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.launch.process_tree import Child

LOOK_SECONDS = 1.0
_CLOCK_SECONDS = 1.0


class Watch:
    """``look`` as often as you like; it looks each second."""

    def __init__(self, stop_seconds: float) -> None:
        self._stop_seconds = stop_seconds
        self._looked = time.monotonic()
        self._began = time.time() - _CLOCK_SECONDS  # file systems count in ticks
        self._stopped_since: dict[int, float] = {}
        self._childless = 0
        self.children: list[Child] = []

    def look(self, now: float) -> bool:
        """Whether it was time to look; ``children`` are the processes of this moment then."""
        passed = now - self._looked
        if not process_tree.IS_LINUX or passed < LOOK_SECONDS:
            return False
        self._looked = now
        self.children = process_tree.descendants()
        if passed > 2 * LOOK_SECONDS:  # this process was stopped itself, as those perhaps
            self._stopped_since = {}
        self._stopped_since = {c.pid: self._stopped_since.get(c.pid, now) for c in self.children if c.is_stopped}
        return True

    def stopped(self) -> Child | None:
        """Return a process that has been stopped for too long; a short stop does no harm."""
        since = self._stopped_since
        return next(
            (c for c in self.children if self._looked - since.get(c.pid, self._looked) > self._stop_seconds), None
        )

    def childless_looks(self, process: int) -> int:
        """Count the looks in a row at which a process had no child, and was not stopped; to be asked after each."""
        is_excused = any(c.parent == process or (c.pid == process and c.is_stopped) for c in self.children)
        self._childless = 0 if is_excused else self._childless + 1
        return self._childless

    def orphan(self, command: Sequence[str], launcher: int) -> Child | None:
        """Return a process that runs ``command`` and has lost its parent, which made it a child of this process."""
        words = [os.fsencode(word) for word in command]
        orphans = [c for c in self.children if c.parent == os.getpid() and c.pid != launcher]
        return next((c for c in orphans if _command(c.pid) == words), None)

    def kill_all(self) -> None:
        """Kill all processes below, and remove what MPICH has left of them."""
        if process_tree.IS_LINUX:
            process_tree.kill_descendants()
            leftovers.remove_unheld(after=self._began)


def _command(process: int) -> list[bytes]:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return []
