"""Test which rank, host and cause a failure names, from the launcher's output and the ranks' heartbeats."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from mpi_backend.launch.launchers import launch_command
from mpi_backend.launch.memory_kills import count_memory_kills, sigkill_hint
from mpi_backend.launch.supervisor import Heartbeats, Supervisor, _signal_of

if TYPE_CHECKING:
    from pathlib import Path

HYDRA = """last words
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 47 RUNNING AT executor-1
=   EXIT CODE: 9
"""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Write the heartbeats of four ranks in containers of three hosts, where processes may have equal ids."""
    (tmp_path / "beats").mkdir()
    for rank, (host, pid) in enumerate([("a", 46), ("a", 47), ("b", 47), ("c", 48)]):
        (tmp_path / "beats" / str(rank)).write_text(json.dumps({"host": host, "pid": pid}))
    return tmp_path


@pytest.mark.parametrize(
    ("pid", "host", "among", "rank"),
    [
        (47, "a", range(4), 1),
        (47, "b", range(4), 2),
        (47, "executor-1", range(2, 3), 2),
        (48, "an alias of c", range(4), 3),
        (47, "an alias of b", range(4), None),
        (99, "a", range(4), None),
    ],
)
def test_a_process_id_and_host_identify_a_rank(out: Path, pid: int, host: str, among: range, rank: int | None) -> None:
    assert Heartbeats(out / "beats", 4, is_local=False).rank_of(pid, host, among) == rank


def test_the_error_of_a_rank_in_an_executor_names_its_host(out: Path) -> None:
    spec = {"out": str(out), "ranks": 4, "launcher": "spark", "hosts": ["executor-0:2", "executor-1:1", "executor-2:1"]}
    (out / "ranks.log").write_text(HYDRA)
    fields = Supervisor(spec, print)._ended_badly(9).fields
    assert (fields["message"], fields["rank"], fields["host"]) == ("a rank was killed by signal 9", 2, "b")
    assert fields["hint"] == "the system sends signal 9 if memory runs out; use more machines, or fewer ranks on each"
    assert fields["traceback"] == "last words"


@pytest.mark.parametrize(
    ("code", "is_of_hydra", "number"),
    [
        (-9, False, signal.SIGKILL),
        (137, False, signal.SIGKILL),
        (9, True, signal.SIGKILL),
        (9, False, 0),
        (255, False, 0),  # mpiexec itself
        (1, False, 0),
    ],
)
def test_the_signal_of_an_exit_code(code: int, number: int, *, is_of_hydra: bool) -> None:
    assert _signal_of(code, is_of_hydra=is_of_hydra) == number


def test_the_hint_names_memory_if_the_kernel_killed_for_it_or_this_is_unknown(tmp_path: Path) -> None:
    counters = tmp_path / "vmstat"
    assert count_memory_kills(counters) is None
    counters.write_text("nr_free_pages 11\noom_kill 3\n")
    assert count_memory_kills(counters) == 3
    memory_hint = "the system sends signal 9 if memory runs out; use more machines, or fewer ranks on each"
    assert sigkill_hint(3, 4, is_local=True) == memory_hint
    assert sigkill_hint(3, 3, is_local=False) == memory_hint
    assert sigkill_hint(None, None, is_local=True) == memory_hint
    assert sigkill_hint(3, 3, is_local=True).startswith("find the sender of the signal")


def test_ranks_in_executors_get_relative_paths_and_their_environment() -> None:
    spec = {
        "python": [sys.executable],
        "plan": "/driver/plan.json",
        "in": "/driver/in",
        "out": "/driver/out",
        "ranks": 2,
        "launcher": "spark",
        "hosts": ["executor-0:2"],
        "address": "10.0.0.1",
        "env": {"PYTHONPATH": "/site"},
        "tell": "10.0.0.1:4000",
        "token": "secret",
    }
    command = " ".join(launch_command(spec))
    assert command.endswith("-m mpi_backend run plan.json --in in --out out --tell 10.0.0.1:4000")
    assert "-wdir / -genvlist PYTHONPATH,PARALAGG_MPI_RANKS,PARALAGG_MPI_TOKEN -n 2" in command
    assert "secret" not in command
    assert "/driver" not in command
