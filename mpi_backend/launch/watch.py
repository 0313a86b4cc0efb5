"""Watch the descendants of this process: find those that are stopped or have lost their parent.

The supervisor and the guard use it. Hydra notices neither a stopped process nor a killed proxy, and its ranks would
run forever. Orphans are found on Linux only, where this process adopts them.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import psutil

from mpi_backend.launch import leftovers, process_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.launch.process_tree import Child

LOOK_SECONDS = 1.0
_CLOCK_SECONDS = 1.0


class Watch:
    """The descendants of this process, listed once a second. Call ``look`` at least as often."""

    def __init__(self, stop_seconds: float) -> None:
        self._stop_seconds = stop_seconds
        self._looked_at = time.monotonic()
        self._started_at = time.time() - _CLOCK_SECONDS  # file times are in ticks
        self._stopped_since: dict[int, float] = {}
        self._childless_count = 0
        self.children: list[Child] = []

    def look(self, now: float) -> bool:
        """List the descendants into ``children`` if a second has passed. Return whether it did."""
        passed = now - self._looked_at
        if passed < LOOK_SECONDS:
            return False
        self._looked_at = now
        self.children = process_tree.descendants()
        if passed > 2 * LOOK_SECONDS:  # this process was stopped itself, and perhaps its descendants with it
            self._stopped_since = {}
        self._stopped_since = {c.pid: self._stopped_since.get(c.pid, now) for c in self.children if c.is_stopped}
        return True

    def stopped(self) -> Child | None:
        """Return a process that has been stopped for longer than ``stop_seconds``, if there is one."""
        since = self._stopped_since
        return next(
            (c for c in self.children if self._looked_at - since.get(c.pid, self._looked_at) > self._stop_seconds), None
        )

    def childless_looks(self, process: int) -> int:
        """Return at how many looks in a row a process had no child and was not stopped. Call it after each look."""
        is_excused = any(c.parent == process or (c.pid == process and c.is_stopped) for c in self.children)
        self._childless_count = 0 if is_excused else self._childless_count + 1
        return self._childless_count

    def orphan(self, command: Sequence[str], launcher: int) -> Child | None:
        """Return a process that runs ``command`` and whose parent has ended, so that this process has adopted it."""
        orphans = [c for c in self.children if c.parent == os.getpid() and c.pid != launcher]
        return next((c for c in orphans if _command(c.pid) == list(command)), None)

    def kill_all(self) -> None:
        """Kill all descendants, and remove the files that MPICH leaves."""
        process_tree.kill_descendants()
        leftovers.remove_unheld(after=self._started_at)


def _command(process: int) -> list[str]:
    try:
        return psutil.Process(process).cmdline()
    except psutil.Error:
        return []
