"""A machine of its own for the campaign: processes, temporary files and shared memory are nobody else's.

Linux namespaces, by ``unshare`` of util-linux; disks that can be filled are small ``tmpfs`` mounts. Without the right
to make namespaces there is no campaign: leftovers of other programs would be taken for ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spark_versions import python_path

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[3]
PYTHONPATH = python_path(ROOT, ROOT / "tests")
HERE = Path("/tmp/faults")  # noqa: S108 - a mount of our own
DISKS = {"temporary": "8m", "out": "8m", "staging": "32m"}
_UNSHARE = ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]


def reason_against() -> str | None:
    """Return why there can be no namespaces here, or that a private /tmp would hide this project; None: all is well."""
    if shutil.which("unshare") is None:
        return "there is no unshare (util-linux)"
    if any(str(path).startswith("/tmp/") for path in (ROOT, sys.prefix, Path.home())):  # noqa: S108 - the folder itself
        return "the project or its Python lies in /tmp, which the campaign replaces"
    tried = subprocess.run(["unshare", *_user(), *_UNSHARE, "true"], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return None if tried.returncode == 0 else f"unshare: {tried.stderr.strip()}"


def command(module: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs a module in namespaces of its own."""
    return ["unshare", *_user(), *_UNSHARE, sys.executable, "-m", module, *arguments]


def mount() -> None:
    """Empty /tmp and /dev/shm, and the disks."""
    _tmpfs(Path("/tmp"), "2g")  # noqa: S108 - the mount
    _tmpfs(Path("/dev/shm"), "1g")  # noqa: S108 - likewise
    for name, size in DISKS.items():
        (HERE / name).mkdir(parents=True)
        _tmpfs(HERE / name, size)


def _tmpfs(path: Path, size: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "faults", str(path)], check=True)  # noqa: S603, S607


def _user() -> list[str]:
    return [] if os.geteuid() == 0 else ["--map-root-user"]
