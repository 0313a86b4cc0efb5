"""Remove files that MPICH leaves when its processes are killed.

The ranks of a machine share ``/dev/shm/mpich_shm_*``. A proxy writes ``/tmp/hydra_hwloc_xmlfile_*``, which describes
the machine, when ranks start. Both are opened by name within ``MPI_Init`` only.

- Ranks remove both as soon as all have started (``remove_own``), so a rank that is killed later leaves nothing.
- The supervisor or guard removes the files of ranks killed earlier, when all of its processes are dead. These are files
  of this user that no process has open (``remove_unheld``).
- The next start removes the files of a run whose supervisor was killed as well (``remove_old``).
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIXES = ("/dev/shm/mpich_shm_", "/dev/shm/ucx_shm_posix_", "/tmp/hydra_hwloc_xmlfile_")  # noqa: S108 - MPICH's names
OLD_SECONDS = 60.0
"""A start keeps younger files: their processes may be invisible here, for example in another container."""


def held_by(processes: Iterable[int]) -> set[Path]:
    """Return MPICH's files that these processes have open."""
    return {path for process in processes for path in _open_files(process)}


def remove(files: Iterable[Path]) -> None:
    """Remove files. Ignore those that do not exist."""
    for path in files:
        with contextlib.suppress(OSError):
            path.unlink()


def remove_own() -> None:
    """Remove the files that this rank and its proxy have open. Call it after a barrier: all must have opened them."""
    remove(held_by((os.getpid(), os.getppid())))


def remove_unheld(after: float = 0.0, before: float = math.inf) -> None:
    """Remove this user's files that were modified between ``after`` and ``before`` and that no process has open."""
    files = {path for path in _files() if after <= _modified_at(path) < before}
    if files:
        remove(files - held_by(psutil.pids()))


def remove_old() -> None:
    """Remove the files of earlier runs that were killed together with their supervisor."""
    remove_unheld(before=time.time() - OLD_SECONDS)


def _files() -> Iterable[Path]:
    for prefix in PREFIXES:
        folder, _, name = prefix.rpartition("/")
        yield from Path(folder).glob(f"{name}*")


def _modified_at(path: Path) -> float:
    """Return when a file was modified; NaN, which lies in no interval, for another user's file and a missing one."""
    try:
        status = path.stat()
    except OSError:
        return math.nan
    return status.st_mtime if status.st_uid == os.getuid() else math.nan


def _open_files(process: int) -> Iterable[Path]:
    try:
        paths = [file.path for file in psutil.Process(process).open_files()]
    except psutil.Error:  # the process has ended, or is another user's
        return
    yield from (Path(path) for path in paths if path.startswith(PREFIXES))
