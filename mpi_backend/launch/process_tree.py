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
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PARENT = 1  # position of the parent's id in /proc/<pid>/stat, behind the name in brackets
_PAUSE_SECONDS = 0.02
_STOPPED = ("T", "t")
_DEAD = ("Z", "X")

RUN_VARIABLE = "PARALAGG_MPI_RUN"
"""The environment variable that all processes of a run have, wherever hydra put them."""

IS_LINUX = sys.platform.startswith("linux")


def adopt_orphans() -> None:
    """Grandchildren whose parent ends become children of this process, not of init."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(number: int = signal.SIGTERM) -> None:
    """The system ends this process when its parent has ended, even by SIGKILL. For the child, before its exec."""
    _prctl(_PR_SET_PDEATHSIG, number)


class Child(NamedTuple):
    """A living process."""

    pid: int
    parent: int
    state: str

    @property
    def is_stopped(self) -> bool:
        """By SIGSTOP or a debugger."""
        return self.state in _STOPPED


def descendants(root: int | None = None) -> list[Child]:
    """List all living processes below ``root``, or below this process."""
    children: dict[int, list[Child]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):  # it may end while it is read
            state, parent = _stat(stat)
            if state not in _DEAD:
                children.setdefault(parent, []).append(Child(int(stat.parent.name), parent, state))
    found: list[Child] = []
    ahead = [root or os.getpid()]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += [child.pid for child in below]
    return found


def is_stopped(process: int) -> bool:
    """Return whether a process is stopped, by SIGSTOP or a debugger."""
    if not IS_LINUX:
        told = subprocess.run(["ps", "-o", "state=", "-p", str(process)], capture_output=True, text=True, check=False)  # noqa: S603, S607
        return told.stdout[:1] in _STOPPED and bool(told.stdout)
    try:
        return _stat(Path(f"/proc/{process}/stat"))[0] in _STOPPED
    except (OSError, ValueError):
        return False


def kill_descendants(seconds: float = 5.0) -> None:
    """SIGKILL to all below, again and again until there is none: one may be born while others are killed."""
    until = time.monotonic() + seconds
    while (living := descendants()) and time.monotonic() < until:
        for child in living:
            with contextlib.suppress(OSError):
                os.kill(child.pid, signal.SIGKILL)
        time.sleep(_PAUSE_SECONDS)


def kill_tree(root: int) -> None:
    """SIGKILL to a process and all below it, the top first, so that nobody restarts what is killed."""
    below = descendants(root) if IS_LINUX else []
    for process in (root, *(child.pid for child in below)):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def kill_run(run: str, seconds: float = 5.0) -> None:
    """Kill all processes of a run whose supervisor was killed, wherever they hang: they share ``RUN_VARIABLE``."""
    until = time.monotonic() + seconds
    while (living := _processes_of(run)) and time.monotonic() < until:
        for process in living:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_PAUSE_SECONDS)


def _processes_of(run: str) -> list[int]:
    mark = f"{RUN_VARIABLE}={run}".encode()
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if mark in environment.read_bytes().split(b"\0"):
                found.append(int(environment.parent.name))
    return found


def _stat(path: Path) -> tuple[str, int]:
    """Return the state of a process and its parent."""
    state, parent = path.read_text().rpartition(")")[2].split()[: _PARENT + 1]
    return state, int(parent)


def _prctl(option: int, value: int) -> None:
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
