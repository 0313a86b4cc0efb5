"""Find and kill all descendants of this process.

MPICH's ``mpiexec`` gives each helper and rank its own session, so no signal to a process group reaches them. On Linux
this process adopts the orphans of its children, so that they stay its descendants. On other systems an orphan is out of
reach, and ranks end by themselves when the supervisor's heartbeat stops.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
import time
from typing import NamedTuple

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAUSE_SECONDS = 0.02
_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
_DEAD = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)

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
    """A living process. ``is_stopped``: SIGSTOP or a debugger has stopped it."""

    pid: int
    parent: int
    is_stopped: bool


def descendants(root: int | None = None) -> list[Child]:
    """List all living processes below ``root``, or below this process."""
    result = []
    for process in _below(root):
        with contextlib.suppress(psutil.NoSuchProcess), process.oneshot():
            status = process.status()
            if status not in _DEAD:
                result.append(Child(process.pid, process.ppid(), status in _STOPPED))
    return result


def is_stopped(process: int) -> bool:
    """Return whether a process is stopped, by SIGSTOP or a debugger."""
    try:
        return psutil.Process(process).status() in _STOPPED
    except psutil.NoSuchProcess:
        return False


def kill_descendants(seconds: float = 5.0) -> None:
    """Send SIGKILL to all descendants until there is none: a new one may start while others are killed."""
    deadline = time.monotonic() + seconds
    while (living := [c.pid for c in descendants()]) and time.monotonic() < deadline:
        _kill(living)
        time.sleep(_PAUSE_SECONDS)


def kill_tree(root: int) -> None:
    """Send SIGKILL to a process, then to its descendants: parents first, so that they cannot restart children."""
    _kill([root, *(process.pid for process in _below(root))])


def kill_run(run: str, seconds: float = 5.0) -> None:
    """Kill all processes whose ``RUN_VARIABLE`` is ``run``, descendants or not: their supervisor was killed."""
    deadline = time.monotonic() + seconds
    while (living := _processes_of(run)) and time.monotonic() < deadline:
        _kill(living)
        time.sleep(_PAUSE_SECONDS)


def _kill(processes: list[int]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            psutil.Process(process).kill()


def _below(root: int | None) -> list[psutil.Process]:
    try:
        return psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _processes_of(run: str) -> list[int]:
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # the process has ended, or is another user's
            if process.status() not in _DEAD and process.environ().get(RUN_VARIABLE) == run:
                processes.append(process.pid)
    return processes


def _prctl(option: int, value: int) -> None:
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
