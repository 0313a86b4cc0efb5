"""Who may have sent signal 9: the kernel counts the processes that it kills for memory."""

from __future__ import annotations

from pathlib import Path

from mpi_backend.launch.preflight import MORE_MEMORY

_OF_MEMORY = f"signal 9 is what the system sends when memory runs out: {MORE_MEMORY}"
_OF_OTHERS = (
    "the kernel killed nothing for memory meanwhile: a person, a batch system's limit, or a service such as earlyoom "
    "sends it too"
)


def killed_for_memory(counters: Path = Path("/proc/vmstat")) -> int | None:
    """Return how many processes the kernel of this machine has killed for memory; None where it does not say."""
    try:
        counts = dict(line.split() for line in counters.read_text().splitlines())
        return int(counts["oom_kill"])
    except (OSError, ValueError, KeyError):
        return None


def hint(before: int | None, now: int | None, *, is_here: bool) -> str:
    """Say memory where the kernel has killed for it, or where nothing else is known, as of another machine."""
    is_other = is_here and before is not None and before == now
    return _OF_OTHERS if is_other else _OF_MEMORY
