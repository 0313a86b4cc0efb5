"""Explain a SIGKILL: the kernel counts the processes that it kills because memory runs out."""

from __future__ import annotations

from pathlib import Path

from mpi_backend.launch.preflight import MORE_MEMORY

_MEMORY_HINT = f"the system sends signal 9 if memory runs out; {MORE_MEMORY}"
_OTHER_HINT = (
    "find the sender of the signal, such as a user, a batch system's limit or earlyoom; the kernel killed no process "
    "for memory"
)


def count_memory_kills(counters: Path = Path("/proc/vmstat")) -> int | None:
    """Return how many processes the kernel of this machine has killed for memory; None if it is unknown."""
    try:
        counts = dict(line.split() for line in counters.read_text().splitlines())
        return int(counts["oom_kill"])
    except (OSError, ValueError, KeyError):
        return None


def sigkill_hint(before: int | None, after: int | None, *, is_local: bool) -> str:
    """Return a hint for a process killed by signal 9, from the counts before and after the run.

    The hint names memory unless the count of the process's own machine is known and has not changed.
    """
    is_other = is_local and before is not None and before == after
    return _OTHER_HINT if is_other else _MEMORY_HINT
