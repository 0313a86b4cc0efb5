"""Files that MPICH leaves where its processes are killed, and who removes them.

The ranks of a machine share ``/dev/shm/mpich_shm_*``; ``/tmp/hydra_hwloc_xmlfile_*`` describes the machine, and a proxy
makes it when ranks start. Both are opened by name within ``MPI_Init`` only. So ranks remove them as soon as all have
started (``remove_own``), and a rank killed later leaves nothing. For those killed earlier, the supervisor or guard
removes what their processes held open (``held_by``). What is left where these were killed as well, the next start
removes (``remove_old``).
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIXES = ("/dev/shm/mpich_shm_", "/tmp/hydra_hwloc_xmlfile_")  # noqa: S108 - MPICH's own names
OLD_SECONDS = 600.0
"""Ranks that take longer to start than this would miss a file that another run removes."""


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


def remove_old() -> None:
    """Remove what runs of this user have left that were killed with all who could have removed it."""
    before = time.time() - OLD_SECONDS
    for prefix in PREFIXES:
        folder, _, name = prefix.rpartition("/")
        for path in Path(folder).glob(f"{name}*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                if status.st_uid == os.getuid() and status.st_mtime < before:
                    path.unlink()


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
