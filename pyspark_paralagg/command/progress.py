"""Show the progress of a run on standard error: one line that is rewritten on a terminal, else a line every 5 s.

The executors report to it: the engine without Spark after each iteration, Spark through ``jobs``.
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
    """A context that shows progress and this package's warnings while it is open; a quiet run shows neither."""

    def __init__(self, stream: IO[str], *, is_quiet: bool = False) -> None:
        self._stream = stream
        self._is_quiet = is_quiet
        self._is_live = not is_quiet and stream.isatty()
        self._lock = threading.Lock()
        self._live_line = ""
        self._relation = ""
        self._last_line_time = time.monotonic()
        self._handler = _WarningHandler(self.write_line)

    def __enter__(self) -> Self:
        logger = logging.getLogger("pyspark_paralagg")
        logger.addHandler(self._handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rewrite("")
        logging.getLogger("pyspark_paralagg").removeHandler(self._handler)

    def write_line(self, line: str) -> None:
        """Write a line that stays."""
        if not self._is_quiet:
            self._write(line)

    def _write(self, line: str) -> None:
        with self._lock:
            self._stream.write(f"{_ERASE if self._live_line else ''}{line}\n")
            self._live_line = ""
            self._stream.flush()

    def start_relation(self, relation: str) -> None:
        """Show that the computation of ``relation`` starts."""
        self._relation = relation
        self._rewrite(f"{relation} ...")

    def show(self, state: str) -> None:
        """Show the state of the current relation; without a terminal, an iteration every ``_LINE_SECONDS``."""
        if self._is_live and state:
            self._rewrite(f"{self._relation}: {state}")
        elif state.startswith("iteration") and time.monotonic() - self._last_line_time > _LINE_SECONDS:
            self._last_line_time = time.monotonic()
            self.write_line(f"{self._relation}: {state}")

    def _rewrite(self, line: str) -> None:
        if not self._is_live:
            return
        with self._lock:
            line = line[:_WIDTH]
            if line != self._live_line:
                self._stream.write(f"{_ERASE}{line}")
                self._stream.flush()
            self._live_line = line


class _WarningHandler(logging.Handler):
    """A log handler that writes warnings as lines of the progress."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._write_line = write_line

    def emit(self, record: logging.LogRecord) -> None:
        """Write ``record`` as one line."""
        self._write_line(record.getMessage())
