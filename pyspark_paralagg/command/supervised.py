"""Read the output of the ranks' supervisor, and detect that it is stopped or was killed."""

from __future__ import annotations

import os
import selectors
import signal
import time
from typing import IO, TYPE_CHECKING, Any, cast

from mpi_backend.launch.process_tree import is_stopped, kill_tree
from pyspark_paralagg.errors import FixpointError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

STOP_SECONDS = 10.0
_POLL_SECONDS = 1.0
_CHUNK = 1 << 16


def read_lines(supervisor: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield the lines of the supervisor's standard output until it ends.

    If it has been stopped for ``STOP_SECONDS``, kill its process tree and raise ``FixpointError``
    ``PARALAGG_MPI_RANK_FAILED``.
    """
    output = cast("IO[bytes]", supervisor.stdout).fileno()
    rest = b""
    stop = _StopClock(supervisor.pid)
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while True:
            if not selector.select(_POLL_SECONDS):
                if stop.has_expired():
                    kill_tree(supervisor.pid)
                    raise FixpointError(
                        "PARALAGG_MPI_RANK_FAILED",
                        f"the supervisor of the ranks has been stopped for {STOP_SECONDS:.0f} s",
                        value=supervisor.pid,
                        hint="find out whether SIGSTOP or a debugger stopped it",
                    )
                continue
            chunk = os.read(output, _CHUNK)
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
            if not chunk:
                return


class _StopClock:
    """The time that a process has been stopped, counted only while this process runs."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._seconds = 0.0
        self._last_look = time.monotonic()

    def has_expired(self) -> bool:
        """Return whether it has been stopped for ``STOP_SECONDS``; call this every ``_POLL_SECONDS``."""
        time_now = time.monotonic()
        elapsed, self._last_look = min(time_now - self._last_look, 2 * _POLL_SECONDS), time_now
        self._seconds = self._seconds + elapsed if is_stopped(self._process) else 0.0
        return self._seconds > STOP_SECONDS


def silent_exit_error(code: int) -> dict[str, Any]:
    """Return the error of a supervisor that ended without reporting one."""
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code} and without a message"
    hint = "find the sender of the signal; the ranks ended with the supervisor" if code == -signal.SIGKILL else None
    return {"code": "PARALAGG_MPI_RANK_FAILED", "message": f"the supervisor of the ranks {how}", "hint": hint}
