"""Test that a stopped or killed supervisor is an error of the command within seconds, and that its ranks end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpi_backend.launch.process_tree import RUN_VARIABLE, descendants, kill_run
from pyspark_paralagg.command import supervised
from pyspark_paralagg.errors import FixpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
CHILD = "import subprocess, sys; p = subprocess.Popen(['sleep', '600']); print('one\\ntwo', flush=True); p.wait()"


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", CHILD]
    env = {**os.environ, RUN_VARIABLE: str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as process:  # noqa: S603 - ours
        yield process
        kill_run(str(tmp_path))


def test_a_stopped_supervisor_is_an_error(supervisor: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "STOP_SECONDS", 1.0)
    lines = supervised.read_lines(supervisor)
    assert [next(lines), next(lines)] == [b"one", b"two"]
    below = descendants(supervisor.pid)
    supervisor.send_signal(signal.SIGSTOP)
    with pytest.raises(FixpointError) as caught:
        next(lines)
    assert caught.value.code == "PARALAGG_MPI_RANK_FAILED"
    assert supervisor.wait(5) == -signal.SIGKILL
    assert [child for child in below if _is_alive(child.pid)] == []


def test_a_short_stop_is_tolerated(supervisor: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "STOP_SECONDS", 2.0)
    lines = supervised.read_lines(supervisor)
    next(lines)
    supervisor.send_signal(signal.SIGSTOP)
    time.sleep(1)
    supervisor.send_signal(signal.SIGCONT)
    assert next(lines) == b"two"


def test_processes_of_a_killed_supervisor_are_killed(supervisor: subprocess.Popen[bytes], tmp_path: Path) -> None:
    next(supervised.read_lines(supervisor))
    below = descendants(supervisor.pid)
    assert len(below) == 1
    supervisor.kill()
    supervisor.wait()
    assert supervised.silent_exit_error(supervisor.returncode)["message"] == (
        "the supervisor of the ranks was killed by signal 9"
    )
    kill_run(str(tmp_path))
    assert not _is_alive(below[0].pid)


def _is_alive(process: int) -> bool:
    until = time.monotonic() + 2
    while (is_there := Path(f"/proc/{process}").exists()) and time.monotonic() < until:
        time.sleep(0.01)
    return is_there and Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
