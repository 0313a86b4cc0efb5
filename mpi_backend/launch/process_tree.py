"""Find and kill all descendants of this process, on Linux.

MPICH's ``mpiexec`` gives each helper and rank its own session, so no signal to a process group reaches them. On Linux
this process adopts the orphans of its children and finds its descendants in ``/proc``. On other systems the supervisor
kills only its direct child, and ranks end by themselves when the supervisor's heartbeat stops.
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
"""The environment variable that all processes of a run have, also those that are no descendants."""

IS_LINUX = sys.platform.startswith("linux")


def adopt_orphans() -> None:
    """Make orphaned descendants children of this process, not of init."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(number: int = signal.SIGTERM) -> None:
    """Let the kernel signal this process when its parent ends, even by SIGKILL. Call it in the child, before exec."""
    _prctl(_PR_SET_PDEATHSIG, number)


class Child(NamedTuple):
    """A living process."""

    pid: int
    parent: int
    state: str

    @property
    def is_stopped(self) -> bool:
        """Return whether SIGSTOP or a debugger has stopped it."""
        return self.state in _STOPPED


def descendants(root: int | None = None) -> list[Child]:
    """List all living processes below ``root``, or below this process."""
    children: dict[int, list[Child]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):  # the process may end while it is read
            state, parent = _stat(stat)
            if state not in _DEAD:
                children.setdefault(parent, []).append(Child(int(stat.parent.name), parent, state))
    result: list[Child] = []
    pending = [root or os.getpid()]
    while pending:
        direct = children.get(pending.pop(), [])
        result += direct
        pending += [child.pid for child in direct]
    return result


def is_stopped(process: int) -> bool:
    """Return whether a process is stopped, by SIGSTOP or a debugger."""
    if not IS_LINUX:
        state = subprocess.run(["ps", "-o", "state=", "-p", str(process)], capture_output=True, text=True, check=False)  # noqa: S603, S607
        return state.stdout[:1] in _STOPPED and bool(state.stdout)
    try:
        return _stat(Path(f"/proc/{process}/stat"))[0] in _STOPPED
    except (OSError, ValueError):
        return False


def kill_descendants(seconds: float = 5.0) -> None:
    """Send SIGKILL to all descendants until there is none: a new one may start while others are killed."""
    deadline = time.monotonic() + seconds
    while (living := descendants()) and time.monotonic() < deadline:
        for child in living:
            with contextlib.suppress(OSError):
                os.kill(child.pid, signal.SIGKILL)
        time.sleep(_PAUSE_SECONDS)


def kill_tree(root: int) -> None:
    """Send SIGKILL to a process, then to its descendants: parents first, so that they cannot restart children."""
    tree = descendants(root) if IS_LINUX else []
    for process in (root, *(child.pid for child in tree)):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def kill_run(run: str, seconds: float = 5.0) -> None:
    """Kill all processes whose ``RUN_VARIABLE`` is ``run``, descendants or not: their supervisor was killed."""
    deadline = time.monotonic() + seconds
    while (living := _processes_of(run)) and time.monotonic() < deadline:
        for process in living:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_PAUSE_SECONDS)


def _processes_of(run: str) -> list[int]:
    mark = f"{RUN_VARIABLE}={run}".encode()
    processes = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # the process has ended, or is another user's
            if mark in environment.read_bytes().split(b"\0"):
                processes.append(int(environment.parent.name))
    return processes


def _stat(path: Path) -> tuple[str, int]:
    """Return the state and the parent of a process."""
    state, parent = path.read_text().rpartition(")")[2].split()[: _PARENT + 1]
    return state, int(parent)


def _prctl(option: int, value: int) -> None:
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
