"""Check that only this user can write to the folders whose code is run: compiled kernels, the shim's jar.

``shim`` and ``mpi_backend.kernels`` use it. A folder that another user owns, or that group or others may write to, is
refused and not repaired: its files may already come from another user.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from pyspark_paralagg.errors import EnvironmentProblem

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


def private_folder(path: Path, setting: str) -> Path:
    """Return ``path``; create it with mode 0700 if it is missing. ``setting`` is the variable that chooses the folder.

    Raises ``EnvironmentProblem``: ``PARALAGG_CACHE_UNSAFE`` if others may write to the folder or replace it,
    ``PARALAGG_CACHE_UNWRITABLE`` if it cannot be created.
    """
    try:
        for missing in reversed([parent for parent in path.parents if not parent.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.stat()
        parents = [(parent, parent.stat()) for parent in path.resolve().parents]
    except OSError as problem:
        raise EnvironmentProblem(
            "PARALAGG_CACHE_UNWRITABLE",
            f"the folder {path} cannot be created: {problem.strerror}",
            value=str(path),
            hint=f"set {setting} to a folder that you can write to",
        ) from None
    _check(path, status, setting)
    for parent, parent_status in parents:
        if parent_status.st_mode & stat.S_IWOTH and not parent_status.st_mode & stat.S_ISVTX:
            raise _unsafe(path, f"any user can replace it, because any user can write to {parent}", setting)
    return path


def read_private(path: Path, setting: str) -> bytes | None:
    """Return the content of a file that only this user can write, None if it is missing. Raises as `private_folder`."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as problem:  # a link, or not readable
        raise _unsafe(path, f"it cannot be opened: {problem.strerror}", setting) from None
    with os.fdopen(file, "rb") as opened:
        _check(path, os.fstat(opened.fileno()), setting)
        return opened.read()


def check_private(path: Path, setting: str) -> None:
    """Raise as `private_folder` does if others may have written the file ``path``."""
    _check(path, path.lstat(), setting)


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600 atomically."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _check(path: Path, status: os.stat_result, setting: str) -> None:
    if status.st_uid not in (os.geteuid(), _ROOT):
        raise _unsafe(path, f"it belongs to user {status.st_uid}", setting)
    if status.st_mode & _BY_OTHERS:
        raise _unsafe(path, f"other users can write to it (mode {stat.S_IMODE(status.st_mode):04o})", setting)


def _unsafe(path: Path, reason: str, setting: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        "PARALAGG_CACHE_UNSAFE",
        f"the code in {path} is not safe to run: {reason}",
        value=str(path),
        hint=f"delete it, so that the next run creates it with mode 0700, or set {setting} to your own folder",
    )
