"""Limit the memory of a rank in the middle of its loop, or kill it. Heartbeat files name the ranks' processes.

Linux only: it uses ``prlimit`` and ``/proc``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

GROWN_MEGABYTES = 300
"""A rank in its loop uses more than this. Python, Numba and one row of input use less than 250."""
MORE_MEGABYTES = 16
WAIT_SECONDS = 60
_PAUSE_SECONDS = 0.01


def starve(process: int) -> None:
    """Limit the address space to the current size plus ``MORE_MEGABYTES``."""
    limit = (_megabytes(process, "VmSize") + MORE_MEGABYTES) << 20
    resource.prlimit(process, resource.RLIMIT_AS, (limit, limit))


def kill(process: int) -> None:
    """Send SIGKILL, as the kernel does when memory runs out."""
    os.kill(process, signal.SIGKILL)


class Harm(threading.Thread):
    """A thread that calls ``harm`` on ``rank`` of a run in ``staging`` once it has grown, at the time ``done``."""

    def __init__(self, staging: Path, rank: int, harm: Callable[[int], None]) -> None:
        super().__init__(daemon=True)
        self._staging, self._rank, self._harm = staging, rank, harm
        self.done: float | None = None
        self.start()

    def run(self) -> None:
        until = time.monotonic() + WAIT_SECONDS
        while self.done is None and time.monotonic() < until:
            process = self._process()
            if process is not None and _megabytes(process, "VmRSS") > GROWN_MEGABYTES:
                self._harm(process)
                self.done = time.monotonic()
            time.sleep(_PAUSE_SECONDS)

    def _process(self) -> int | None:
        for beat in self._staging.glob(f"*/out*/beats/{self._rank}"):
            with contextlib.suppress(OSError, ValueError):  # not yet written, or gone
                return int(json.loads(beat.read_text())["pid"])
        return None


def processes_in(folder: Path) -> list[str]:
    """Return the commands of running processes that name ``folder``."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has ended
            continue
        if str(folder) in command:
            commands.append(command)
    return commands


def _megabytes(process: int, field: str) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    match = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
    return int(match[1]) >> 10 if match else 0
