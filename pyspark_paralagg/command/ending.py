"""Handle the signals that end a run: defer them for a moment, and repeat one whose exception was lost.

Python drops an exception that is raised in a callback of a weak reference, and a library may swallow it by a bare
``except``. Imports do both, so Ctrl-C or `kill` in the first seconds of a run was sometimes lost.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""The signals that end a run: Ctrl-C, `kill`, and the end of its terminal."""

_PAUSE_SECONDS = 0.05
_SIGNAL_EXIT_BASE = 128
"""A process that a signal ends exits with this plus the signal's number, by the convention of shells."""


_received: list[int] = []
"""The signals of this run that have raised an exception."""


def forget_signals() -> None:
    """Begin a run."""
    _received.clear()


def recorded(handler: Callable[[int, FrameType | None], object]) -> Callable[[int, FrameType | None], object]:
    """Return a handler that records its signal if ``handler`` raises.

    ``cancel_on_interrupt`` recognises PySpark's handler by its module, and wraps its own by ``rewrap``.
    """

    @functools.wraps(handler)
    def handle_and_record(number: int, frame: FrameType | None) -> object:
        try:
            return handler(number, frame)
        except BaseException:
            _received.append(number)
            raise

    handle_and_record.rewrap = recorded  # type: ignore[attr-defined]
    return handle_and_record


def repeat_swallowed_signal() -> None:
    """Raise a recorded signal again: a run that still goes on has lost its exception. Call it before results count."""
    if _received:
        signal.raise_signal(_received[-1])


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


@contextmanager
def signals_deferred(*, discards: bool = False) -> Iterator[None]:
    """Defer the signals of ``END_SIGNALS`` until the context ends; with ``discards``, drop them if it succeeds."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Any] = {s: signal.signal(s, lambda *call: received.append(call)) for s in END_SIGNALS}
    has_succeeded = False
    try:
        yield
        has_succeeded = True
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)
        for number, frame in received[: 0 if discards and has_succeeded else 1]:
            handler = handlers[number]
            if callable(handler):
                handler(number, frame)


def _signal_number(problem: BaseException | None) -> int | None:
    if isinstance(problem, KeyboardInterrupt):
        return signal.SIGINT
    code = getattr(problem, "code", None) if isinstance(problem, SystemExit) else None
    number = code - _SIGNAL_EXIT_BASE if isinstance(code, int) else 0
    return number if 0 < number < signal.NSIG else None
