"""Files that MPICH leaves where its processes are killed, and who removes them.

The ranks of a machine share ``/dev/shm/mpich_shm_*``; ``/tmp/hydra_hwloc_xmlfile_*`` describes the machine, and a proxy
makes it when ranks start. Both are opened by name within ``MPI_Init`` only. So ranks remove them as soon as all have
started (``remove_own``), and a rank killed later leaves nothing. What those have left that were killed earlier, the
supervisor or guard removes when all of its processes are dead, and the next start where that was killed as well: files
of this user that no process has open any more (``remove_unheld``).
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIXES = ("/dev/shm/mpich_shm_", "/dev/shm/ucx_shm_posix_", "/tmp/hydra_hwloc_xmlfile_")  # noqa: S108 - their own names
OLD_SECONDS = 60.0
"""A start leaves younger files alone. Their processes may be invisible here, as those of another container are."""


def held_by(processes: Iterable[int | str]) -> set[Path]:
    """Return MPICH's files that these processes have open: nobody else's, however many runs there are."""
    return {path for process in processes for path in _open_files(process)}


def remove(files: Iterable[Path]) -> None:
    """Remove files, some of which may be gone."""
    for path in files:
        with contextlib.suppress(OSError):
            path.unlink()


def remove_own() -> None:
    """Remove what this rank and its proxy have open. Collective in effect: call it behind a barrier."""
    remove(held_by(("self", os.getppid())))


def remove_unheld(after: float = 0.0, before: float = math.inf) -> None:
    """Remove this user's files that were made in these times, and that no process has open."""
    made = {path for path in _files() if after <= _made_at(path) < before}
    if made:
        remove(made - held_by(path.name for path in Path("/proc").glob("[0-9]*")))


def remove_old() -> None:
    """Remove what runs have left that were killed with all who could have removed it."""
    remove_unheld(before=time.time() - OLD_SECONDS)


def _files() -> Iterable[Path]:
    for prefix in PREFIXES:
        folder, _, name = prefix.rpartition("/")
        yield from Path(folder).glob(f"{name}*")


def _made_at(path: Path) -> float:
    """Return when a file was made; NaN, which lies in no time, for another user's and for what is gone."""
    try:
        status = path.stat()
    except OSError:
        return math.nan
    return status.st_mtime if status.st_uid == os.getuid() else math.nan


def _open_files(process: int | str) -> Iterable[Path]:
    try:
        links = list(Path(f"/proc/{process}/fd").iterdir())
    except OSError:  # it has ended, or is another user's, or this is not Linux
        return
    for link in links:
        with contextlib.suppress(OSError):
            target = str(link.readlink())
            if target.startswith(PREFIXES) and not target.endswith(" (deleted)"):
                yield Path(target)
