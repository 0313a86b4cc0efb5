"""How far a run is, on standard error: one line that moves where that is a terminal, else a line now and then.

Beside ``run``. Whoever computes says what it does: the engine of this process or its ranks each iteration, Spark's jobs
by way of ``jobs``.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

_LINE_SECONDS = 5.0
_ERASE = "\r\x1b[K"
_WIDTH = 100


class Progress:
    """A context: while it is open, warnings of this package go through it too; a quiet run has neither."""

    def __init__(self, stream: IO[str], *, is_quiet: bool = False) -> None:
        self._stream = stream
        self._is_quiet = is_quiet
        self._moves = not is_quiet and stream.isatty()
        self._lock = threading.Lock()
        self._shown = ""
        self._relation = ""
        self._told = time.monotonic()
        self._handler = _Lines(self.say)

    def __enter__(self) -> Self:
        logger = logging.getLogger("pyspark_paralagg")
        logger.addHandler(self._handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._move("")
        logging.getLogger("pyspark_paralagg").removeHandler(self._handler)

    def say(self, line: str) -> None:
        """A line that stays."""
        if not self._is_quiet:
            self._write(line)

    def _write(self, line: str) -> None:
        with self._lock:
            self._stream.write(f"{_ERASE if self._shown else ''}{line}\n")
            self._shown = ""
            self._stream.flush()

    def on(self, relation: str) -> None:
        """What is being computed from here on."""
        self._relation = relation
        self._move(f"{relation} ...")

    def show(self, state: str) -> None:
        """What is done for it right now; where lines do not move, an iteration now and then."""
        if self._moves and state:
            self._move(f"{self._relation}: {state}")
        elif state.startswith("iteration") and time.monotonic() - self._told > _LINE_SECONDS:
            self._told = time.monotonic()
            self.say(f"{self._relation}: {state}")

    def _move(self, line: str) -> None:
        if not self._moves:
            return
        with self._lock:
            line = line[:_WIDTH]
            if line != self._shown:
                self._stream.write(f"{_ERASE}{line}")
                self._stream.flush()
            self._shown = line


class _Lines(logging.Handler):
    """Warnings as lines of the progress."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        self._say(record.getMessage())
