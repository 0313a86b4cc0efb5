"""What the supervisor of ranks tells the command line, also where it is stopped or killed and tells nothing."""

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
_LOOK_SECONDS = 1.0
_CHUNK = 1 << 16


def lines_of(supervisor: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield the lines of its standard output, until it ends.

    Raises ``FixpointError`` ``PARALAGG_MPI_RANK_FAILED`` where it has been stopped for ``STOP_SECONDS``; it and all
    below it are killed then.
    """
    output = cast("IO[bytes]", supervisor.stdout).fileno()
    rest = b""
    stop = _Stop(supervisor.pid)
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while True:
            if not selector.select(_LOOK_SECONDS):
                if stop.lasts():
                    kill_tree(supervisor.pid)
                    raise FixpointError(
                        "PARALAGG_MPI_RANK_FAILED",
                        f"the supervisor of the ranks has been stopped for {STOP_SECONDS:.0f} s",
                        value=supervisor.pid,
                        hint="SIGSTOP or a debugger has stopped it",
                    )
                continue
            chunk = os.read(output, _CHUNK)
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
            if not chunk:
                return


class _Stop:
    """How long a process has been stopped, counted while this process runs."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._seconds = 0.0
        self._looked = time.monotonic()

    def lasts(self) -> bool:
        """Whether it has been for ``STOP_SECONDS``; ask each ``_LOOK_SECONDS``."""
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, 2 * _LOOK_SECONDS), now
        self._seconds = self._seconds + passed if is_stopped(self._process) else 0.0
        return self._seconds > STOP_SECONDS


def ended_silently(code: int) -> dict[str, Any]:
    """Return the error of a supervisor that ended without telling one."""
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code} and without a word"
    hint = "its ranks end with it; whoever sent the signal may know why" if code == -signal.SIGKILL else None
    return {"code": "PARALAGG_MPI_RANK_FAILED", "message": f"the supervisor of the ranks {how}", "hint": hint}
