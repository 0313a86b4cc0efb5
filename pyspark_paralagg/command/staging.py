"""Stage output files: write each beside its target under another name, and move all when all are complete.

``results`` and the report use it. If the run ends early, also by an interrupt, the staged files and the folders made
for them are removed. A move that fails undoes the moves before it.
"""

from __future__ import annotations

import glob
import os
import shutil
import socket
from typing import TYPE_CHECKING

import psutil

from pyspark_paralagg.command.ending import signals_deferred
from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    Undo = Callable[[], object]
    Move = Callable[[Path, Path], Undo]


_BACKUP_SUFFIX = "-before"


class Staging:
    r"""A context for staged files: ``place`` returns a staged name, ``commit`` moves all; without it they are removed.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with Staging() as staging:
    ...     _ = staging.place(folder / "out" / "path.csv").write_text("1\t2\n")
    >>> (folder / "out").exists()
    False
    """

    def __init__(self) -> None:
        self.is_committed = False
        self._targets: dict[Path, Path] = {}
        self._moves: dict[Path, Move] = {}
        self._folders: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with signals_deferred():
            for staged in self._targets:
                _remove(staged)
            for folder in reversed(self._folders):
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()

    def place(self, target: Path, *, is_table: bool = False) -> Path:
        """Return the staged name for ``target``: a file that may be replaced, or with ``is_table`` a folder.

        Raise ``UsageError`` ``PARALAGG_BAD_OUTPUT`` if ``target`` cannot be written or conflicts with another target.
        """
        target = target.resolve()  # a link stays; the file that it points to is replaced
        if not is_table and target.is_dir():
            raise _bad_output(f"{target} is a folder, but the output is a file", target)
        if not is_table and target.exists() and not target.is_file():
            raise _bad_output(f"{target} is not a plain file", target)
        for other in self._targets.values():
            if target == other:
                raise _bad_output(f"two outputs have the target {target}", target)
            if target in other.parents or other in target.parents:
                raise _bad_output(f"the targets of two outputs, {target} and {other}, contain each other", target)
        self._make_folders(target.parent)
        _recover(target)
        staged = target.parent / f"{_prefix(target)}{os.getpid()}"
        try:  # fail before the computation if the folder is not writable
            staged.touch()
            staged.unlink()
        except OSError as problem:
            raise _bad_output(f"cannot write {target}: {problem.strerror}", target) from None
        self._targets[staged] = target
        return staged

    def move_by(self, staged: Path, move: Move) -> None:
        """Set how ``staged`` is moved: ``move`` returns a function that undoes it. The default replaces a file."""
        self._moves[staged] = move

    def commit(self) -> None:
        """Move all staged files to their targets, or none. An interrupt during a successful commit is discarded."""
        undos: list[Undo] = []
        with signals_deferred(discards=True):
            try:
                for staged, target in self._targets.items():
                    undos.append(self._moves.get(staged, _replace)(staged, target))
            except BaseException:
                for undo in reversed(undos):
                    undo()
                raise
            self.is_committed = True
            self._folders.clear()
            for staged in self._targets:
                _remove(_backup_path(staged))

    def _make_folders(self, folder: Path) -> None:
        """Make ``folder`` and its missing parents."""
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for path in reversed(missing):
            try:
                path.mkdir()
            except OSError as problem:
                raise _bad_output(f"cannot create the folder {path}: {problem.strerror}", path) from None
            self._folders.append(path)


def _bad_output(message: str, path: Path) -> UsageError:
    return UsageError("PARALAGG_BAD_OUTPUT", message, value=str(path))


def _prefix(target: Path) -> str:
    """Return the prefix of the names of staged files; the id of a process of this machine follows it."""
    return f".{target.name}.paralagg-{socket.gethostname()}-"


def _recover(target: Path) -> None:
    """Remove files that killed runs left beside ``target``; restore ``target`` from their backup if it is missing."""
    prefix = _prefix(target)
    for leftover in sorted(target.parent.glob(f"{glob.escape(prefix)}*"), reverse=True):  # backups come first
        process = leftover.name.removeprefix(prefix).removesuffix(_BACKUP_SUFFIX)
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            if leftover.name.endswith(_BACKUP_SUFFIX) and not target.exists():
                leftover.replace(target)
            else:
                _remove(leftover)


def _backup_path(staged: Path) -> Path:
    """Return the path that keeps the old target until all files are moved."""
    return staged.with_name(f"{staged.name}{_BACKUP_SUFFIX}")


def _replace(staged: Path, target: Path) -> Undo:
    backup = _backup_path(staged)
    existed = target.exists()
    if existed:
        target.replace(backup)
    try:
        staged.replace(target)
    except OSError:
        if existed:
            backup.replace(target)
        raise
    return lambda: _undo(staged, target, backup if existed else None)


def _undo(staged: Path, target: Path, backup: Path | None) -> None:
    target.replace(staged)
    if backup:
        backup.replace(target)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
