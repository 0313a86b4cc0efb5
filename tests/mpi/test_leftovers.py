"""Test that MPICH's files are removed however its processes end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mpi_backend.launch import leftovers, process_tree
from mpi_backend.launch.preflight import Request, mpiexec
from mpi_backend.launch.watch import Watch

pytest.importorskip("mpi4py", reason="ranks need mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process has open stands in /proc")

SCRIPT = Path(__file__).parent / "holds_shared_memory.py"
ENV = {**os.environ, "HYDRA_LAUNCHER": "fork", "HYDRA_RMK": "user"}
DELETED = " (deleted)"


def test_killed_ranks_leave_no_shared_memory_and_no_file_of_hydra() -> None:
    command = [mpiexec(Request("local", 2)), "-n", "2", sys.executable, str(SCRIPT)]
    with subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, text=True) as run:  # noqa: S603 - ours
        assert run.stdout is not None
        opened = [run.stdout.readline().strip() for _ in range(2)]
        held = leftovers.held_by(child.pid for child in process_tree.descendants(run.pid))
        process_tree.kill_tree(run.pid)
    assert all(name.startswith("/dev/shm/mpich_shm_") for name in opened), opened  # noqa: S108 - MPICH's own name
    assert not any(Path(name.removesuffix(DELETED)).exists() for name in opened)
    assert held == set()  # the proxy holds hydra's file open


def test_unused_files_are_removed_with_the_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(leftovers, "PREFIXES", (f"{tmp_path}/mpich_shm_",))
    monkeypatch.setattr(process_tree, "kill_descendants", lambda: None)
    watch = Watch(10)
    for name in ("1_0", "2_0", "old"):
        (tmp_path / f"mpich_shm_{name}").touch()
    before = time.time() - 5
    os.utime(tmp_path / "mpich_shm_old", (before, before))
    with (tmp_path / "mpich_shm_2_0").open():
        watch.kill_all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mpich_shm_2_0", "mpich_shm_old"]


def test_the_next_start_removes_old_files_of_this_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(leftovers, "PREFIXES", (f"{tmp_path}/mpich_shm_",))
    for name in ("mpich_shm_old", "mpich_shm_new", "other"):
        (tmp_path / name).touch()
    old = time.time() - leftovers.OLD_SECONDS - 1
    os.utime(tmp_path / "mpich_shm_old", (old, old))
    os.utime(tmp_path / "other", (old, old))
    leftovers.remove_old()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mpich_shm_new", "other"]
