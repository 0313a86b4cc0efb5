"""Ranks that share no files with their supervisor: it makes of their messages the files that others write."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from mpi_backend.signs import FOLDER_VARIABLE, TOKEN_VARIABLE, Line, Listener
from mpi_backend.worker import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

END_SECONDS = 2.0
ERROR = {"code": "PARALAGG_MPI_RANK_FAILED", "message": "x" * 300_000, "rank": 3}


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    (tmp_path / "beats").mkdir()
    made = Listener(tmp_path)
    monkeypatch.setenv(TOKEN_VARIABLE, made.token)
    yield made
    made.close()


def line(listener: Listener, rank: int = 3) -> Line:
    return Line(f"127.0.0.1:{listener.port}", rank)


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_beat_is_a_file_that_is_touched_and_goes_at_the_end(listener: Listener, tmp_path: Path) -> None:
    rank = line(listener)
    listener.hear(END_SECONDS)  # it calls
    listener.hear(END_SECONDS)  # it says who it is
    beat = tmp_path / "beats" / "3"
    assert json.loads(beat.read_text())["host"] == socket.gethostname()
    before = beat.stat().st_mtime_ns
    time.sleep(0.01)
    assert rank.live()
    listener.hear(END_SECONDS)
    assert beat.stat().st_mtime_ns > before
    rank.end()
    listener.hear(END_SECONDS)
    assert files(tmp_path) == []
    assert rank.live()  # too late, and no new beat
    listener.hear(END_SECONDS)
    assert files(tmp_path) == []


def test_what_was_said_last_is_heard_after_the_rank_has_gone(listener: Listener, tmp_path: Path) -> None:
    def speak() -> None:
        rank = line(listener)
        rank.fail(ERROR)
        rank.report({"iterations": 7})

    speaker = threading.Thread(target=speak)
    speaker.start()
    listener.hear(END_SECONDS)
    began = time.monotonic()
    listener.hear_all(END_SECONDS)
    assert time.monotonic() - began < END_SECONDS / 2
    assert json.loads((tmp_path / "error-3.json").read_text()) == ERROR
    assert json.loads((tmp_path / "report.json").read_text()) == {"iterations": 7}
    speaker.join()


def test_a_rank_that_nobody_hears_any_more_knows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beats").mkdir()
    listener = Listener(tmp_path)
    monkeypatch.setenv(TOKEN_VARIABLE, listener.token)
    rank = line(listener)
    for _ in range(3):
        listener.hear(0.1)
        assert rank.live()
    listener.close()
    until = time.monotonic() + END_SECONDS
    while rank.live() and time.monotonic() < until:
        time.sleep(0.01)
    assert not rank.live()


@pytest.mark.parametrize(
    "said", [b'{"token": "guessed", "rank": 3}', b"GET / HTTP/1.1", b'{"rank": 3}', b"[]", b"5", b"\xff"]
)
def test_who_does_not_know_the_token_is_not_heard(listener: Listener, tmp_path: Path, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", listener.port)) as stranger:
        stranger.sendall(said + b'\n{"report": {}}\n')
        listener.hear(END_SECONDS)
        listener.hear(END_SECONDS)
        stranger.settimeout(END_SECONDS)
        assert stranger.recv(1) == b""
    assert files(tmp_path) == []


def test_a_long_line_without_an_end_is_not_kept_for_strangers(listener: Listener) -> None:
    with socket.create_connection(("127.0.0.1", listener.port)) as stranger:
        stranger.settimeout(END_SECONDS)
        with pytest.raises(ConnectionError):  # noqa: PT012 - which of the calls sees it is chance
            for _ in range(100):
                stranger.sendall(b"x" * 10_000)
                listener.hear(0.01)
            stranger.recv(1)


def test_a_failing_rank_tells_it_by_its_line(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.chdir("/")
    assert main(["plan.json", "--in", "in", "--out", "out", "--tell", f"127.0.0.1:{listener.port}"]) == 1
    listener.hear(END_SECONDS)
    listener.hear(END_SECONDS)
    told = json.loads((tmp_path / "error-0.json").read_text())
    assert (told["code"], told["rank"], told["host"]) == ("PARALAGG_MPI_RANK_FAILED", 0, socket.gethostname())
    assert "plan.json" in told["message"]
