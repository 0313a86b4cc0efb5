"""Processes below this one: found and ended however they were started, on Linux.

MPICH's ``mpiexec`` gives each of its helpers and ranks a session of its own, so no signal to a process group reaches
them. Here this process adopts what its children leave behind, and finds its descendants in ``/proc``. Elsewhere only
the direct child is ended, and ranks end themselves when the supervisor's beat stops.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PARENT = 1  # position of the parent's id in /proc/<pid>/stat, behind the name in brackets
_PAUSE_SECONDS = 0.02

IS_LINUX = sys.platform.startswith("linux")


def adopt_orphans() -> None:
    """Grandchildren whose parent ends become children of this process, not of init."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """The system ends this process when its parent has ended, even by SIGKILL. For the child, before its exec."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def descendants() -> list[int]:
    """Ids of all living processes below this one."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):  # it may end while it is read
            state, parent = stat.read_text().rpartition(")")[2].split()[: _PARENT + 1]
            if state not in ("Z", "X"):
                children.setdefault(int(parent), []).append(int(stat.parent.name))
    found: list[int] = []
    ahead = [os.getpid()]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def kill_descendants(seconds: float = 5.0) -> None:
    """SIGKILL to all below, again and again until there is none: one may be born while others are killed."""
    until = time.monotonic() + seconds
    while (living := descendants()) and time.monotonic() < until:
        for process in living:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_PAUSE_SECONDS)


def _prctl(option: int, value: int) -> None:
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
