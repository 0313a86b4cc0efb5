"""Files that appear all at once: each is written beside its place under another name, and moved when all is there.

Under ``results`` and the report. Whatever ends the run early, an interrupt included, takes all of it away again, and
folders that were made for it.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType, TracebackType

    from typing_extensions import Self


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
        self._moves: list[tuple[Path, Callable[[], None]]] = []
        self._folders: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _undisturbed():
            for staged, _ in self._moves:
                if staged.is_dir():
                    shutil.rmtree(staged, ignore_errors=True)
                else:
                    staged.unlink(missing_ok=True)
            for folder in reversed(self._folders):
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()

    def place(self, target: Path, move: Callable[[Path, Path], None] | None = None) -> Path:
        """The name to write ``target`` under. ``move`` brings it to ``target``; by default it replaces a file.

        Raises ``UsageError`` ``PARALAGG_BAD_OUTPUT`` where nothing can be written there.
        """
        if move is None and target.is_dir():
            raise UsageError(
                "PARALAGG_BAD_OUTPUT", f"{target} is a folder, and a file is to go there", value=str(target)
            )
        self.folder(target.parent)
        staged = target.parent / f".{target.name}.paralagg-{os.getpid()}"
        how = move or os.replace
        self._moves.append((staged, lambda: how(staged, target)))
        return staged

    def folder(self, folder: Path) -> None:
        """Make ``folder`` and what lies above it."""
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for made in reversed(missing):
            try:
                made.mkdir()
            except OSError as problem:
                raise UsageError(
                    "PARALAGG_BAD_OUTPUT", f"cannot make the folder {made}: {problem.strerror}", value=str(made)
                ) from None
            self._folders.append(made)

    def commit(self) -> None:
        """Move everything to its place."""
        with _undisturbed():
            while self._moves:
                self._moves[0][1]()
                self._moves.pop(0)
            self._folders.clear()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait for the end of this."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before: dict[int, Any] = {
        s: signal.signal(s, lambda *got: came.append(got)) for s in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        for number, frame in came[:1]:
            handler = before[number]
            if callable(handler):
                handler(number, frame)
