"""Test that ranks of one machine listen on the loopback address only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpi_backend.launch.launchers import environment, launch_command

pytest.importorskip("mpi4py", reason="ranks need mpi4py")
HAS_MPI = bool(shutil.which("mpiexec")) or (Path(sys.executable).parent / "mpiexec").exists()

SCRIPT = """
import json, re, sys
from pathlib import Path

def listening():
    # Address and inode of every listening socket of this process.
    mine = {p.readlink().name for p in Path('/proc/self/fd').iterdir() if p.is_symlink()}
    found = set()
    for table in ('tcp', 'tcp6'):
        for line in Path('/proc/self/net', table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == '0A' and f'socket:[{words[9]}]' in mine:
                found.add((words[1].partition(':')[0], words[9]))
    return found

before = listening()  # hydra's own, which ranks inherit
from mpi4py import MPI
MPI.COMM_WORLD.allreduce(1)
told = MPI.COMM_WORLD.gather(sorted(address for address, _ in listening() - before))
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps(told))
"""
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


@pytest.mark.skipif(sys.platform != "linux" or not HAS_MPI, reason="needs /proc and an mpiexec")
def test_ranks_of_one_machine_listen_on_the_loopback_only(tmp_path: Path) -> None:
    script = tmp_path / "rank.py"
    script.write_text(SCRIPT)
    spec = {"python": [sys.executable, str(script)], "plan": "p", "in": "i", "out": str(tmp_path), "ranks": 2}
    spec |= {"launcher": "local", "oversubscribe": True}
    run = subprocess.run(  # noqa: S603 - our own launcher
        launch_command(spec),
        env={**os.environ, **environment(spec)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    addresses_by_rank = json.loads(run.stdout)
    assert len(addresses_by_rank) == 2
    assert {address for addresses in addresses_by_rank for address in addresses} <= LOOPBACK
