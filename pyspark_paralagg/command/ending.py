"""Python drops an exception that is raised in a callback of a weak reference, also the one that asks a run to end.

Imports have such callbacks, so Ctrl-C or `kill` in the first second of a run was lost now and then.
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
_SHELLS = 128


@contextmanager
def asked_again() -> Iterator[None]:
    """Send a signal again whose exception was dropped: SIGINT, or the one that the code of a ``SystemExit`` names."""
    before = sys.unraisablehook

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        number = _signal_of(dropped.exc_value)
        if number is None:
            before(dropped)
        else:  # later: here it would be dropped again
            threading.Timer(_PAUSE_SECONDS, os.kill, (os.getpid(), number)).start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _signal_of(problem: BaseException | None) -> int | None:
    if isinstance(problem, KeyboardInterrupt):
        return signal.SIGINT
    code = getattr(problem, "code", None) if isinstance(problem, SystemExit) else None
    return code - _SHELLS if isinstance(code, int) and _SHELLS < code < _SHELLS + signal.NSIG else None
