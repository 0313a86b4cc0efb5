"""Find out what this process may use of the machine."""

from __future__ import annotations

import contextlib
import os


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    with contextlib.suppress(AttributeError):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
