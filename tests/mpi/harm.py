"""What systems do to a rank in the middle of its loop: no more memory, or SIGKILL. Ranks are found by their beats.

Linux only: whoever limits another process asks ``prlimit``, and what a process holds stands in ``/proc``.
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
"""Held by a rank that is in its loop: Python, Numba and one row of input are less than 250."""
MORE_MEGABYTES = 16
PATIENCE_SECONDS = 60
_PAUSE_SECONDS = 0.01


def starve(process: int) -> None:
    """From here on it gets 16 MB more than the address space that it has."""
    most = (_megabytes(process, "VmSize") + MORE_MEGABYTES) << 20
    resource.prlimit(process, resource.RLIMIT_AS, (most, most))


def kill(process: int) -> None:
    """As the system does when its memory runs out."""
    os.kill(process, signal.SIGKILL)


class Harm(threading.Thread):
    """Waits until ``rank`` of a run in ``staging`` has grown, then does ``harm`` to it; ``done`` says when."""

    def __init__(self, staging: Path, rank: int, harm: Callable[[int], None]) -> None:
        super().__init__(daemon=True)
        self._staging, self._rank, self._harm = staging, rank, harm
        self.done: float | None = None
        self.start()

    def run(self) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
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
    """Commands of living processes that name ``folder``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has ended
            continue
        if str(folder) in command:
            found.append(command)
    return found


def _megabytes(process: int, what: str) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = re.search(rf"^{what}:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) >> 10 if found else 0
