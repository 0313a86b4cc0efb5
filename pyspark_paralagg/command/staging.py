"""Files that appear all at once: each is written beside its place under another name, and moved when all is there.

Under ``results`` and the report. Whatever ends the run early, an interrupt included, takes all of it away again, and
folders that were made for it; a move that fails undoes those before it.
"""

from __future__ import annotations

import glob
import os
import shutil
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType, TracebackType

    from typing_extensions import Self

    Undo = Callable[[], object]
    Move = Callable[[Path, Path], Undo]


_BEFORE = "-before"
ENDS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""What asks a run to end: Ctrl-C, `kill`, and the end of its terminal."""


class Staging:
    r"""A context: ``place`` gives names to write to, ``commit`` moves them; leaving without it removes them.

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
        with _undisturbed():
            for staged in self._targets:
                _remove(staged)
            for folder in reversed(self._folders):
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()

    def place(self, target: Path, *, is_table: bool = False) -> Path:
        """The name to write ``target`` under: a file that may be replaced, or with ``is_table`` a folder.

        Raises ``UsageError`` ``PARALAGG_BAD_OUTPUT`` where nothing can be written there, or where something else that
        was placed would be in the way.
        """
        target = target.resolve()  # a link stays, and what it points to is replaced
        if not is_table and target.is_dir():
            raise _bad_output(f"{target} is a folder, and a file is to go there", target)
        if not is_table and target.exists() and not target.is_file():
            raise _bad_output(f"{target} is no plain file", target)
        for other in self._targets.values():
            if target == other:
                raise _bad_output(f"two outputs go to {target}", target)
            if target in other.parents or other in target.parents:
                raise _bad_output(f"one output goes to {target}, another to {other}", target)
        self._make(target.parent)
        _recover(target)
        staged = target.parent / f"{_prefix(target)}{os.getpid()}"
        try:  # whether one can write there is asked before anything is computed
            staged.touch()
            staged.unlink()
        except OSError as problem:
            raise _bad_output(f"cannot write {target}: {problem.strerror}", target) from None
        self._targets[staged] = target
        return staged

    def move_by(self, staged: Path, move: Move) -> None:
        """``move`` brings ``staged`` to its target and gives what undoes that; a file needs none."""
        self._moves[staged] = move

    def commit(self) -> None:
        """Move everything to its place, or nothing. An interrupt in the meantime comes too late, and is forgotten."""
        undos: list[Undo] = []
        with _undisturbed(forgets=True):
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
                _remove(_before(staged))

    def _make(self, folder: Path) -> None:
        """Make ``folder`` and what lies above it."""
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for made in reversed(missing):
            try:
                made.mkdir()
            except OSError as problem:
                raise _bad_output(f"cannot make the folder {made}: {problem.strerror}", made) from None
            self._folders.append(made)


def _bad_output(message: str, path: Path) -> UsageError:
    return UsageError("PARALAGG_BAD_OUTPUT", message, value=str(path))


def _prefix(target: Path) -> str:
    """What names of staged files begin with; a process id of this machine follows."""
    return f".{target.name}.paralagg-{socket.gethostname()}-"


def _recover(target: Path) -> None:
    """Remove what killed runs left beside ``target``; what they had set aside comes back, if it is missing."""
    prefix = _prefix(target)
    for left in sorted(target.parent.glob(f"{glob.escape(prefix)}*"), reverse=True):  # -before comes first
        process = left.name.removeprefix(prefix).removesuffix(_BEFORE)
        if process.isdecimal() and not _is_alive(int(process)):
            if left.name.endswith(_BEFORE) and not target.exists():
                left.replace(target)
            else:
                _remove(left)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _before(staged: Path) -> Path:
    """Where what was at the target is kept until all is moved."""
    return staged.with_name(f"{staged.name}{_BEFORE}")


def _replace(staged: Path, target: Path) -> Undo:
    kept = _before(staged)
    was_there = target.exists()
    if was_there:
        target.replace(kept)
    try:
        staged.replace(target)
    except OSError:
        if was_there:
            kept.replace(target)
        raise
    return lambda: _undo(staged, target, kept if was_there else None)


def _undo(staged: Path, target: Path, kept: Path | None) -> None:
    target.replace(staged)
    if kept:
        kept.replace(target)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _undisturbed(*, forgets: bool = False) -> Iterator[None]:
    """What asks to end waits for the end of this; with ``forgets``, and where all is well, it is gone then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before: dict[int, Any] = {s: signal.signal(s, lambda *got: came.append(got)) for s in ENDS}
    is_well = False
    try:
        yield
        is_well = True
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        for number, frame in came[: 0 if forgets and is_well else 1]:
            handler = before[number]
            if callable(handler):
                handler(number, frame)
