"""Finds the processes of a run by their part in it, signals them, and closes their connections."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_backend.launch.process_tree import descendants

if TYPE_CHECKING:
    import random

_PIDFD_GETFD = 438
_PARTS = {
    "heartbeat": "mpi_backend.launch.heartbeat",
    "supervisor": "-m mpi_backend.launch ",
    "guard": "-m mpi_backend.launch.guard ",
    "proxy": r"^\S*hydra_pmi_proxy ",
    "mpiexec": r"^\S*mpiexec\S* ",
    "rank": r"^\S*python\S* -m mpi_backend run ",
    "executor": r"java .*CoarseGrainedExecutorBackend",
    "jvm": r"java .*SparkSubmit",
}
_OF_RUNS = ("heartbeat", "supervisor", "guard", "proxy", "mpiexec", "rank")


def find(root: int, part: str) -> list[int]:
    """Return the processes below ``root`` that have this part in the run."""
    if part in ("command", "driver"):
        return [root]
    return [child.pid for child in descendants(root) if re.search(_PARTS[part], command(child.pid))]


def of_runs() -> dict[int, str]:
    """Return all living processes of MPI runs, with their commands."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        words = command(int(path.name))
        if any(re.search(_PARTS[part], words) for part in _OF_RUNS):
            found[int(path.name)] = words
    return found


def command(process: int) -> str:
    """Return the command line of a living process; empty of a dead one."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def send(process: int, number: int) -> bool:
    """Send a signal; return whether there was somebody to get it."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True


def close_connection(process: int, random: random.Random) -> bool:
    """Shut down one of its TCP connections, for both of its ends; return whether it had one."""
    tcp = _inodes("tcp") | _inodes("tcp6")
    numbers = []
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                known = re.fullmatch(r"socket:\[(\d+)\]", str(link.readlink()))
                if known and known[1] in tcp:
                    numbers.append(int(link.name))
    if not numbers:
        return False
    try:
        handle = os.pidfd_open(process)
    except OSError:
        return False
    try:
        number = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, handle, random.choice(numbers), 0)
    finally:
        os.close(handle)
    if number < 0:
        return False
    with socket.socket(fileno=number) as line:
        try:
            line.shutdown(socket.SHUT_RDWR)
        except OSError:
            return False
    return True


def _inodes(kind: str) -> set[str]:
    """Of established connections."""
    lines = Path(f"/proc/self/net/{kind}").read_text().splitlines()[1:]
    return {words[9] for words in map(str.split, lines) if words[3] == "01"}


def reap() -> None:
    """Bury what has lost its parent: as process 1 of the namespace this process is its heir."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state == "Z" and int(parent) == os.getpid() and int(stat.parent.name) not in children:
                os.waitpid(int(stat.parent.name), os.WNOHANG)


children: set[int] = set()
"""Processes that this process has started and waits for itself."""
STOP, CONTINUE, KILL = signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL
