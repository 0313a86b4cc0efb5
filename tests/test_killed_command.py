"""What a killed command leaves, the next one removes; a full disk is an error with a code."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import time
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn

import pytest
from spark_versions import python_path
from test_cli import DISTANCES, EDGES, ENDLESS

from pyspark_paralagg.command import ending, results
from pyspark_paralagg.command.cli import INTERRUPTED, TERMINATED, main
from pyspark_paralagg.command.ending import resend_dropped_signals
from pyspark_paralagg.command.staging import Staging
from pyspark_paralagg.command.work import work_folder
from pyspark_paralagg.session import interrupt

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Handler = signal.Handlers | Callable[[int, FrameType | None], object]

pytest.importorskip("numba", reason="the engine needs numba")

ROOT = Path(__file__).parent.parent
PATIENCE_SECONDS = 60


def command(folder: Path, text: str) -> subprocess.Popen[bytes]:
    (folder / "p.dl").write_text(text)
    (folder / "edge.facts").write_text(EDGES)
    (folder / "temporary").mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": python_path(ROOT), "TMPDIR": str(folder / "temporary")}
    words = [sys.executable, "-m", "pyspark_paralagg", "run", "p.dl", "-D", "out", "--backend", "local", "-q"]
    return subprocess.Popen(words, cwd=folder, env=environment, stderr=subprocess.PIPE)  # noqa: S603 - ours


def interrupt_as_others_do(number: int, frame: FrameType | None) -> NoReturn:
    """Handle SIGINT as PySpark does, whose handler stands where a session has started before."""
    del number, frame
    raise KeyboardInterrupt


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_next_start_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    with command(tmp_path, ENDLESS) as killed:
        until = time.monotonic() + PATIENCE_SECONDS
        while not list((tmp_path / "temporary").glob("paralagg-*")):
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(0.5)
        killed.kill()
    assert len(names(tmp_path / "temporary")) == 1
    with command(tmp_path, DISTANCES) as following:
        assert following.wait(PATIENCE_SECONDS) == 0
    assert names(tmp_path / "temporary") == []
    assert names(tmp_path / "out") == ["dist.csv"]


def test_the_folder_of_a_run_that_lives_stays(tmp_path: Path) -> None:
    with work_folder(str(tmp_path)) as first:
        with work_folder(str(tmp_path)) as second:
            assert first.exists()
            assert second.exists()
        assert names(tmp_path) == [first.name]
    assert names(tmp_path) == []


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    return ended.pid


def test_staged_files_of_the_dead_go_and_what_they_set_aside_comes_back(tmp_path: Path, dead: int) -> None:
    target = tmp_path / "r.csv"
    stale = tmp_path / f".r.csv.paralagg-{socket.gethostname()}-{dead}"
    stale.write_text("half")
    stale.with_name(f"{stale.name}-before").write_text("old")
    alive = tmp_path / f".r.csv.paralagg-{socket.gethostname()}-{os.getppid()}"
    elsewhere = tmp_path / f".r.csv.paralagg-elsewhere-{dead}"
    for path in (alive, elsewhere):
        path.write_text("of others")
    with Staging() as staging:
        staging.place(target)
    assert target.read_text() == "old"
    assert names(tmp_path) == sorted([target.name, alive.name, elsewhere.name])


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), SystemExit(143)])
def test_what_asks_to_end_is_not_lost_in_a_callback(problem: BaseException) -> None:
    asked: list[int] = []
    before = {number: signal.signal(number, lambda *got: asked.append(got[0])) for number in (2, 15)}

    class Thing:
        pass

    def callback(_: object) -> None:
        raise problem

    try:
        with resend_dropped_signals():
            thing = Thing()
            reference = weakref.ref(thing, callback)
            del thing
            assert reference() is None
            assert asked == []  # not while the callback runs
            time.sleep(0.5)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert asked == [2 if isinstance(problem, KeyboardInterrupt) else 15]


@pytest.mark.parametrize(
    ("number", "code", "handler"),
    [
        (signal.SIGTERM, TERMINATED, signal.SIG_DFL),
        (signal.SIGHUP, TERMINATED, signal.SIG_DFL),
        (signal.SIGINT, INTERRUPTED, signal.default_int_handler),
        (signal.SIGINT, INTERRUPTED, interrupt_as_others_do),
    ],
)
def test_what_a_library_swallows_ends_the_run_before_its_results_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int, handler: Handler
) -> None:
    computed = results.write
    before = signal.signal(number, handler)

    def write_after_a_lost_signal(*args: object, **options: object) -> int:
        with contextlib.suppress(BaseException):
            signal.raise_signal(number)
        return computed(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(results, "write", write_after_a_lost_signal)
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(".decl r(x: number)\nr(1).\n.output r\n")
    try:
        assert main(["run", "p.dl", "-D", "out", "--backend", "local"]) == code
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
    assert not list(tmp_path.rglob("*.csv"))


def test_pyspark_s_handler_is_replaced_by_one_that_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "_cancel_all", lambda _: None)
    pysparks = functools.partial(interrupt_as_others_do)
    pysparks.__module__ = "pyspark.core.context"
    before = signal.signal(signal.SIGINT, ending.recorded(pysparks))
    try:
        interrupt.cancel_on_interrupt(SimpleNamespace(sparkContext=None))  # type: ignore[arg-type]
        ending.forget_signals()
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            ending.repeat_swallowed_signal()
    finally:
        signal.signal(signal.SIGINT, before)
        ending.forget_signals()


def test_a_handler_that_does_not_raise_is_called_once() -> None:
    calls: list[int] = []
    before = signal.signal(signal.SIGINT, ending.recorded(lambda number, _: calls.append(number)))
    try:
        ending.forget_signals()
        signal.raise_signal(signal.SIGINT)
        ending.repeat_swallowed_signal()
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == [signal.SIGINT]


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_full_disk_has_a_code(tmp_path: Path) -> None:
    with command(tmp_path, DISTANCES) as run:
        assert run.wait(PATIENCE_SECONDS) == 0
    words = [sys.executable, "-m", "pyspark_paralagg", "run", "p.dl", "-D", "-", "--backend", "local", "-q"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(  # noqa: S603 - ours
            words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_SECONDS
        )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[0] == "PARALAGG_DISK_FULL: No space left on device"
