"""Folders for the temporary files of a run. What a killed run has left, the next one removes.

A run holds a lock in its folder, which the system releases when it dies, however it dies.
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
    """Make a folder in ``parent``, or where temporary files go; remove it at the end."""
    place = Path(parent or tempfile.gettempdir())
    _remove_dead(place)
    # The name changes when the lock is held: nobody takes the folder for a dead run's before.
    made = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=place))
    try:
        with (made / _LOCK).open("wb") as lock:
            _locked(lock)
            made = made.rename(made.with_name(made.name[1:]))
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _remove_dead(place: Path) -> None:
    """Remove folders of this user's runs that hold their locks no more."""
    for lock in place.glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError):
            if lock.stat().st_uid == os.getuid():
                with lock.open("wb") as file:
                    if _locked(file):
                        shutil.rmtree(lock.parent, ignore_errors=True)


def _locked(file: IO[bytes]) -> bool:
    """Lock a file, if nobody else has."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows, where nothing is removed
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
