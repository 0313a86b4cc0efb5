"""Does one fault to a run."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import TYPE_CHECKING

from campaigns.faults.isolation import HERE
from campaigns.faults.processes import CONTINUE, KILL, STOP, close_connection, find, send

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from campaigns.faults.cases import Case
    from campaigns.faults.workload import Command, Session

_FILLER = ".filler"
_CHUNK = b"\0" * 4096


class Harm:
    """``attempt`` until it has worked; ``undo`` when the run is over, or where a blink ends."""

    def __init__(self, case: Case, workload: Command | Session, random: random.Random) -> None:
        self._case, self._workload, self._random = case, workload, random
        self.at: float | None = None
        self.until: float | None = None
        self._undo: Callable[[], object] = lambda: None

    def attempt(self) -> None:
        """Harm a process that is the target, if there is one by now."""
        if self._do():
            self.at = time.monotonic()
            self.until = self.at + self._case.seconds if self._case.fault == "blink" else None

    def tick(self) -> None:
        """End a blink in its time."""
        if self.until is not None and time.monotonic() > self.until:
            self.undo()

    def undo(self) -> None:
        """Continue what is stopped by a blink; free the disk."""
        self._undo()
        self._undo = lambda: None
        if self.until is not None:
            self.at, self.until = time.monotonic(), None

    def _do(self) -> bool:
        case = self._case
        if case.fault == "disk":
            return self._fill()
        if case.target == "jobs":
            self._workload.cancel()
            return True
        if case.fault == "cancel":
            return send(self._workload.root, signal.Signals[case.target])
        found = find(self._workload.root, case.target)
        if not found:
            return False
        process = self._random.choice(found)
        if case.fault == "socket":
            return close_connection(process, self._random)
        if case.fault == "blink":
            self._undo = lambda: send(process, CONTINUE)
        return send(process, KILL if case.fault in ("kill", "lost driver") else STOP)

    def _fill(self) -> bool:
        """Until nothing can be written to the disk any more."""
        file = HERE / self._case.target / _FILLER
        self._undo = lambda: file.unlink(missing_ok=True)
        with contextlib.suppress(OSError), file.open("wb", buffering=0) as out:
            while True:
                out.write(_CHUNK)
        return True
