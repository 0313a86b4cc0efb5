"""Test that the supervisor ends all ranks however a run ends, and reports why. Ranks are stand-in processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mpi_backend.launch.launchers import launch_command
from mpi_backend.launch.preflight import Request, mpiexec
from mpi_backend.launch.process_tree import descendants

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.rotates(runs=3)

STANDIN = Path(__file__).parent / "standin.py"
ROOT = STANDIN.parents[2]
# The heartbeat timeout is ten seconds; tests use two.
SUPERVISOR = (
    "import sys, mpi_backend.launch.supervisor as s; s.BEAT_SECONDS = 2.0; "
    "from mpi_backend.launch.__main__ import main; sys.exit(main(sys.argv[1:]))"
)
PROMPT_SECONDS = 8

has_mpi = bool(shutil.which("mpiexec")) or (Path(sys.executable).parent / "mpiexec").exists()
needs_mpi = pytest.mark.skipif(not has_mpi, reason="there is no mpiexec")
on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere ranks end by the supervisor's beat, after 15 s"
)
TWO = pytest.param(2, marks=needs_mpi)


class Run:
    """A supervisor of a run in ``folder``; ``events`` waits for its end."""

    def __init__(self, folder: Path, ranks: int, behaviour: str, **spec: Any) -> None:  # noqa: ANN401 - fields of a SPEC
        self.folder = folder / "run"
        self.out = self.folder / "out"
        self.out.mkdir(parents=True)
        fields = {
            "plan": "plan.json",
            "in": str(self.folder),
            "out": str(self.out),
            "ranks": ranks,
            "launcher": "local",
            "python": [sys.executable, str(STANDIN)],
            "env": {"STANDIN": behaviour},
            "oversubscribe": True,
            **spec,
        }
        (self.folder / "spec.json").write_text(json.dumps(fields))
        self.process = subprocess.Popen(  # noqa: S603 - our own supervisor
            [sys.executable, "-c", SUPERVISOR, str(self.folder / "spec.json")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
        )

    def events(self) -> list[dict[str, Any]]:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            events = [json.loads(line) for line in lines]
        self.process.wait(PROMPT_SECONDS)
        return events

    def error(self) -> dict[str, Any]:
        end = self.events()[-1]
        assert end["event"] == "end"
        assert end["ok"] is False
        return dict(end["error"])

    def wait_for_beats(self, ranks: int) -> None:
        until = time.monotonic() + PROMPT_SECONDS
        while not all((self.out / "beats" / str(r)).exists() for r in range(ranks)):
            assert time.monotonic() < until
            time.sleep(0.02)

    def named(self, name: str) -> int:
        """Return the descendant of the supervisor with this name."""
        names = {c.pid: Path(f"/proc/{c.pid}/comm").read_text().strip() for c in descendants(self.process.pid)}
        return next(process for process, process_name in names.items() if process_name.startswith(name[:15]))

    def remaining(self) -> list[str]:
        """Return the commands of running processes that name this run's folder."""
        commands = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(self.out) in command:
                commands.append(command)
        return commands

    def remaining_after(self, seconds: float) -> list[str]:
        until = time.monotonic() + seconds
        while self.remaining() and time.monotonic() < until:
            time.sleep(0.05)
        return self.remaining()


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Any]:
    started: list[Run] = []

    def start(ranks: int, behaviour: str, **spec: Any) -> Run:  # noqa: ANN401 - fields of a SPEC
        started.append(Run(tmp_path / str(len(started)), ranks, behaviour, **spec))
        return started[-1]

    yield start
    for run in started:
        run.process.kill()
        run.process.wait()
        for pipe in (run.process.stdin, run.process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.mark.parametrize("ranks", [1, TWO])
def test_progress_of_rank_0_is_forwarded_and_nothing_else(runs: Any, ranks: int) -> None:  # noqa: ANN401 - a fixture
    run = runs(ranks, "ends")
    *progress, end = run.events()
    assert end == {"event": "end", "ok": True}
    assert [p["iteration"] for p in progress] == [1, 2, 3, 4, 5, 6]
    assert run.process.returncode == 0
    assert "not for the parent" in (run.out / "ranks.log").read_text()
    assert run.remaining() == []


@pytest.mark.parametrize("ranks", [1, TWO])
def test_the_error_of_a_rank_is_forwarded_unchanged(runs: Any, ranks: int) -> None:  # noqa: ANN401 - a fixture
    run = runs(ranks, "raises")
    error = run.error()
    assert (error["code"], error["place"], error["rank"]) == ("PARALAGG_LIMIT_REACHED", "r", ranks - 1)
    assert run.remaining() == []


@pytest.mark.parametrize("ranks", [1, TWO])
def test_a_killed_rank_ends_the_others(runs: Any, ranks: int) -> None:  # noqa: ANN401 - a fixture
    run = runs(ranks, "killed")
    error = run.error()
    assert (error["code"], error["message"]) == ("PARALAGG_MPI_RANK_FAILED", "a rank was killed by signal 9")
    assert "the kernel killed no process for memory" in error["hint"]
    assert run.remaining() == []


@pytest.mark.parametrize("ranks", [1, TWO])
def test_a_rank_that_holds_the_gil_sends_heartbeats(runs: Any, ranks: int) -> None:  # noqa: ANN401 - a fixture
    run = runs(ranks, "holds")
    assert run.events()[-1] == {"event": "end", "ok": True}


@on_linux
@needs_mpi
def test_a_killed_proxy_ends_its_ranks_at_once(runs: Any) -> None:  # noqa: ANN401 - a fixture
    run = runs(2, "endless")
    run.wait_for_beats(2)
    started_at = time.monotonic()
    os.kill(run.named("hydra_pmi_proxy"), signal.SIGKILL)
    error = run.error()
    assert time.monotonic() - started_at < PROMPT_SECONDS / 2
    assert error["code"] == "PARALAGG_MPI_RANK_FAILED"
    assert error["message"] == "the launcher's process that started a rank was killed"
    assert error["rank"] in (0, 1)
    assert run.remaining() == []


@on_linux
@needs_mpi
def test_the_error_of_a_rank_counts_even_if_its_proxy_ends_first(runs: Any) -> None:  # noqa: ANN401 - a fixture
    run = runs(2, "endless")
    run.wait_for_beats(2)
    error = {"code": "PARALAGG_DATALOG_PATTERN", "message": "`a(` is not a regular expression", "rank": 1, "host": "h"}
    (run.out / "error-1.json").write_text(json.dumps(error))
    os.kill(run.named("hydra_pmi_proxy"), signal.SIGKILL)
    assert run.error()["code"] == "PARALAGG_DATALOG_PATTERN"
    assert run.remaining() == []


@on_linux
def test_a_launcher_without_its_proxy_is_an_error(runs: Any, tmp_path: Path) -> None:  # noqa: ANN401 - a fixture
    (tmp_path / "bin").mkdir()
    mpiexec_alone = tmp_path / "bin" / "mpiexec"
    mpiexec_alone.write_text("#!/bin/sh\nexec sleep 600\n")  # as an mpiexec whose proxy was killed at its start
    mpiexec_alone.chmod(0o755)
    run = runs(2, "ends", python=[str(tmp_path / "bin" / "python"), str(STANDIN)])
    started_at = time.monotonic()
    assert run.error()["message"] == "the launcher's process that starts the ranks was killed"
    assert time.monotonic() - started_at < 2 * PROMPT_SECONDS
    assert run.remaining() == []


@on_linux
@needs_mpi
def test_a_killed_launcher_is_not_reported_as_a_rank(runs: Any) -> None:  # noqa: ANN401 - a fixture
    run = runs(2, "endless")
    run.wait_for_beats(2)
    os.kill(run.named("mpiexec"), signal.SIGKILL)
    error = run.error()
    assert (error["message"], error["rank"]) == ("the launcher of the ranks was killed by signal 9", None)
    assert error["hint"].startswith("find the sender of the signal")
    assert run.remaining() == []


@on_linux
@needs_mpi
@pytest.mark.parametrize("name", ["mpiexec", "hydra_pmi_proxy"])
def test_a_stopped_launcher_is_an_error(runs: Any, name: str) -> None:  # noqa: ANN401 - a fixture
    run = runs(2, "endless")
    run.wait_for_beats(2)
    process = run.named(name)
    os.kill(process, signal.SIGSTOP)
    assert run.error()["message"] == f"process {process} of the run has been stopped for 2 s"
    assert run.remaining() == []


@on_linux
@needs_mpi
@pytest.mark.parametrize("name", ["mpiexec", "hydra_pmi_proxy", "python"])
def test_a_short_stop_of_a_process_is_tolerated(runs: Any, name: str) -> None:  # noqa: ANN401 - a fixture
    run = runs(2, "ends")
    run.wait_for_beats(2)
    process = run.named(name)
    os.kill(process, signal.SIGSTOP)
    time.sleep(1)
    os.kill(process, signal.SIGCONT)
    assert run.events()[-1] == {"event": "end", "ok": True}


@pytest.mark.parametrize("ranks", [1, TWO])
def test_a_silent_rank_is_named_and_ends_the_others(runs: Any, ranks: int) -> None:  # noqa: ANN401 - a fixture
    run = runs(ranks, "stopped", env={"STANDIN": "stopped"})
    error = run.error()
    assert error["code"] == "PARALAGG_MPI_RANK_FAILED"
    assert error["message"] == "a rank sent no heartbeat for 2 s"
    assert error["rank"] == ranks - 1
    assert error["host"]
    assert run.remaining() == []


def test_the_output_of_a_rank_that_exits_is_reported(runs: Any) -> None:  # noqa: ANN401 - a fixture
    error = runs(1, "exits").error()
    assert error["message"] == "a rank ended with exit code 7 and without a result"
    assert (error["value"], error["rank"]) == (7, 0)
    assert "last words" in error["traceback"]


@pytest.mark.parametrize("ranks", [1, TWO])
@pytest.mark.parametrize("how", ["end of stdin", "SIGTERM", "SIGINT"])
def test_a_cancelled_run_ends_all_ranks(runs: Any, ranks: int, how: str) -> None:  # noqa: ANN401 - a fixture
    run = runs(ranks, "endless")
    run.wait_for_beats(ranks)
    if how == "end of stdin":
        run.process.stdin.close()
    else:
        run.process.send_signal(signal.Signals[how])
    assert run.error()["code"] == "PARALAGG_MPI_CANCELLED"
    assert run.process.returncode == 3
    assert run.remaining() == []


@on_linux
@pytest.mark.parametrize("ranks", [1, TWO])
def test_ranks_do_not_outlive_a_killed_supervisor(runs: Any, ranks: int) -> None:  # noqa: ANN401 - a fixture
    run = runs(ranks, "endless")
    run.wait_for_beats(ranks)
    run.process.kill()
    assert run.remaining_after(PROMPT_SECONDS) == []


def test_the_folder_of_a_dead_parent_is_removed(runs: Any, tmp_path: Path) -> None:  # noqa: ANN401 - a fixture
    scratch = tmp_path / "0" / "run"
    run = runs(1, "endless", scratch=str(scratch))
    run.wait_for_beats(1)
    run.process.stdout.close()
    run.process.stdin.close()
    run.process.wait(PROMPT_SECONDS)
    assert not scratch.exists()
    assert run.remaining() == []


def test_a_template_starts_ranks(runs: Any) -> None:  # noqa: ANN401 - a fixture
    run = runs(1, "ends", launcher="sh -c 'exec {command}' {ranks}")
    assert run.events()[-1]["ok"]


def test_a_missing_launcher_is_an_error_before_ranks_start(runs: Any) -> None:  # noqa: ANN401 - a fixture
    run = runs(2, "ends", launcher="no-such-command -n {ranks}")
    assert run.error()["code"] == "PARALAGG_MPI_NO_LAUNCHER"
    assert not (run.out / "beats").exists()


@pytest.mark.parametrize(
    ("launcher", "command"),
    [
        (
            "srun -n {ranks} --kill-on-bad-exit",
            "srun -n 3 --kill-on-bad-exit python -m mpi_backend run p --in i --out o",
        ),
        ("go --np={ranks} {command} --quiet", "go --np=3 python -m mpi_backend run p --in i --out o --quiet"),
    ],
)
def test_a_template_places_the_worker(launcher: str, command: str) -> None:
    spec = {"python": ["python"], "plan": "p", "in": "i", "out": "o", "ranks": 3, "launcher": launcher}
    assert launch_command(spec) == command.split()


@needs_mpi
def test_the_interpreters_mpiexec_is_used() -> None:
    installed = Path(sys.executable).parent / "mpiexec"
    expected = str(installed) if installed.exists() else shutil.which("mpiexec")
    assert mpiexec(Request("local", 2)) == expected
