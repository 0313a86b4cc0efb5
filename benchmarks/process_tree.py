"""A worker and all that it starts (Spark's JVM, Python workers, ranks): resident memory, and ending them all.

A worker leads a session of its own, so what it started is found by session id even when a parent in between has gone.
Ranks have a supervisor with a session of its own: they are found as children of what was found.
Read from Linux's /proc; elsewhere nothing is found: memory is shown as 0, and what a worker started must end itself.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def members(leader: int) -> list[int]:
    """Return the processes of the session that `leader` leads, and what descends from them."""
    found, others = [], dict[int, list[int]]()
    for entry in _PROC.glob("[0-9]*"):
        try:
            after_name = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        if int(after_name[3]) == leader:
            found.append(int(entry.name))
        else:
            others.setdefault(int(after_name[1]), []).append(int(entry.name))
    for pid in found:  # grows on the way: children of children
        found += others.pop(pid, [])
    return found


def resident_megabytes(leader: int) -> tuple[float, float]:
    """Return (sum over the processes now, largest high-water mark of a single process so far)."""
    now, highest = 0, 0
    for pid in members(leader):
        try:
            status = (_PROC / str(pid) / "status").read_text()
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Vm"))
        now += _kilobytes(fields.get("VmRSS"))
        highest = max(highest, _kilobytes(fields.get("VmHWM")))
    return now * 1024 / 1e6, highest * 1024 / 1e6


def end(leader: int) -> None:
    """Kill the session's processes, those that a killed parent left behind included."""
    for pid in members(leader):
        with suppress(ProcessLookupError):  # ended meanwhile
            os.kill(pid, signal.SIGKILL)


def _kilobytes(value: str | None) -> int:
    return int(value.split()[0]) if value else 0
