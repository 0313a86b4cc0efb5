"""A file system of a given size."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """Mount a file system of this size on ``folder``, which is made; raises CalledProcessError if the user may not."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)  # noqa: S603 - of this folder
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S603, S607 - likewise


@functools.cache
def may_mount() -> bool:
    """Whether the user may mount file systems: root outside a container, as a rule."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder, "disk"), 4):
                return True
        except subprocess.CalledProcessError:
            return False
