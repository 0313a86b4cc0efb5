"""``python -m mpi_backend.launch.guard COMMAND ...``: run a command; kill its process tree when stdin closes.

A Spark task starts hydra's proxies through this module. When the task or its JVM ends, the guard kills the ranks and
removes their folder (``FOLDER_VARIABLE``). It also kills a command that is stopped for ten seconds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from selectors import EVENT_READ, SelectSelector
from typing import TYPE_CHECKING

from mpi_backend.launch import process_tree
from mpi_backend.launch.messages import FOLDER_VARIABLE
from mpi_backend.launch.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

NOT_STARTED = 127
STOP_SECONDS = 10.0
_TICK_SECONDS = 0.1


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code as a shell does: 127 if there is no such command."""
    os.umask(0o077)  # only this user may read what ranks write
    process_tree.adopt_orphans()
    try:
        child = subprocess.Popen(  # noqa: S603 - the launcher's own proxy
            [_resolve_command(argv[0]), *argv[1:]],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=process_tree.end_with_parent,  # noqa: PLW1509 - this process has one thread
        )
    except OSError:
        return NOT_STARTED
    is_stdin_open = True
    watch = Watch(STOP_SECONDS)
    try:
        with SelectSelector() as selector:
            selector.register(0, EVENT_READ)
            while is_stdin_open and child.poll() is None:
                if watch.look(time.monotonic()) and watch.stopped() is not None:
                    break
                is_stdin_open = not selector.select(_TICK_SECONDS) or bool(os.read(0, 1))
    finally:
        if child.poll() is None:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(1.0)
        child.kill()
        watch.kill_all()
        if not is_stdin_open and FOLDER_VARIABLE in os.environ:
            shutil.rmtree(os.environ[FOLDER_VARIABLE], ignore_errors=True)
    return child.wait() & 0xFF


def _resolve_command(command: str) -> str:
    """Return the command's path as given, if it exists here, else the same command beside this interpreter."""
    beside = Path(sys.executable).parent / Path(command).name
    return str(beside) if not Path(command).exists() and beside.exists() else command


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
