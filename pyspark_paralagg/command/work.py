"""Manage the folder for a run's temporary files; each run removes the folders that killed runs left.

A run holds a lock in its folder. The system releases the lock when the process ends for any reason.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "paralagg-"
_LOCK = ".lock"


@contextmanager
def work_folder(parent: str | None = None) -> Iterator[Path]:
    """Make a folder in ``parent``, or in the default folder for temporary files; remove it at the end."""
    parent_folder = Path(parent or tempfile.gettempdir())
    _remove_dead(parent_folder)
    # The folder gets its final name after it is locked, so no other run removes it as a dead run's.
    folder = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=parent_folder))
    try:
        with (folder / _LOCK).open("wb") as lock:
            _try_lock(lock)
            folder = folder.rename(folder.with_name(folder.name[1:]))
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_dead(parent_folder: Path) -> None:
    """Remove folders of this user's runs that no longer hold their locks."""
    for lock in parent_folder.glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError):
            if lock.stat().st_uid == os.getuid():
                with lock.open("wb") as file:
                    if _try_lock(file):
                        shutil.rmtree(lock.parent, ignore_errors=True)


def _try_lock(file: IO[bytes]) -> bool:
    """Lock ``file``; return False if another process holds the lock."""
    try:
        import fcntl  # noqa: PLC0415 - absent on Windows, where no folder is removed
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
