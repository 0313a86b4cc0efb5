"""Resend a signal whose exception Python drops because it is raised in a callback of a weak reference.

Imports run such callbacks, so Ctrl-C or `kill` in the first second of a run was sometimes lost.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAUSE_SECONDS = 0.05
_SIGNAL_EXIT_BASE = 128
"""A process that a signal ends exits with this plus the signal's number, by the convention of shells."""


@contextmanager
def resend_dropped_signals() -> Iterator[None]:
    """Send a signal again if its exception was dropped: SIGINT, or that of the code of a ``SystemExit``."""
    previous_hook = sys.unraisablehook

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        number = _signal_number(dropped.exc_value)
        if number is None:
            previous_hook(dropped)
        else:  # after a pause, since an exception raised inside the hook would be dropped again
            threading.Timer(_PAUSE_SECONDS, os.kill, (os.getpid(), number)).start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = previous_hook


def _signal_number(problem: BaseException | None) -> int | None:
    if isinstance(problem, KeyboardInterrupt):
        return signal.SIGINT
    code = getattr(problem, "code", None) if isinstance(problem, SystemExit) else None
    number = code - _SIGNAL_EXIT_BASE if isinstance(code, int) else 0
    return number if 0 < number < signal.NSIG else None
