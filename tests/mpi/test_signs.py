"""Test ranks that share no files with their supervisor: it turns their messages into files."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpi_backend.launch import listener as listening
from mpi_backend.launch.listener import Listener
from mpi_backend.launch.messages import FOLDER_VARIABLE, TOKEN_VARIABLE, SocketLink
from mpi_backend.launch.preflight import Problem
from mpi_backend.worker import main

if TYPE_CHECKING:
    from collections.abc import Iterator

END_SECONDS = 2.0
RANKS = 4
ERROR = {"code": "PARALAGG_MPI_RANK_FAILED", "message": "x" * 300_000, "rank": 3}


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    (tmp_path / "beats").mkdir()
    listener = Listener(tmp_path, "127.0.0.1", RANKS)
    monkeypatch.setenv(TOKEN_VARIABLE, listener.token)
    yield listener
    listener.close()


def connect(listener: Listener, rank: int = 3) -> SocketLink:
    return SocketLink(f"127.0.0.1:{listener.port}", rank)


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_heartbeat_touches_a_file_that_is_removed_at_the_end(listener: Listener, tmp_path: Path) -> None:
    rank = connect(listener)
    listener.poll(END_SECONDS)  # the connection
    listener.poll(END_SECONDS)  # the first message, with the rank
    beat = tmp_path / "beats" / "3"
    assert json.loads(beat.read_text())["host"] == socket.gethostname()
    before = beat.stat().st_mtime_ns
    time.sleep(0.01)
    assert rank.send_heartbeat()
    listener.poll(END_SECONDS)
    assert beat.stat().st_mtime_ns > before
    rank.send_end()
    listener.poll(END_SECONDS)
    assert files(tmp_path) == []
    assert rank.send_heartbeat()  # a late heartbeat creates no file
    listener.poll(END_SECONDS)
    assert files(tmp_path) == []


def test_the_last_messages_of_a_rank_that_has_ended_are_received(listener: Listener, tmp_path: Path) -> None:
    def send_all() -> None:
        rank = connect(listener)
        rank.send_error(ERROR)
        rank.send_report({"iterations": 7})

    sender = threading.Thread(target=send_all)
    sender.start()
    listener.poll(END_SECONDS)
    started_at = time.monotonic()
    listener.poll_until_closed(END_SECONDS)
    assert time.monotonic() - started_at < END_SECONDS / 2
    assert json.loads((tmp_path / "error-3.json").read_text()) == ERROR
    assert json.loads((tmp_path / "report.json").read_text()) == {"iterations": 7}
    sender.join()


def test_sending_to_a_closed_listener_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beats").mkdir()
    listener = Listener(tmp_path, "127.0.0.1", RANKS)
    monkeypatch.setenv(TOKEN_VARIABLE, listener.token)
    rank = connect(listener)
    for _ in range(3):
        listener.poll(0.1)
        assert rank.send_heartbeat()
    listener.close()
    until = time.monotonic() + END_SECONDS
    while rank.send_heartbeat() and time.monotonic() < until:
        time.sleep(0.01)
    assert not rank.send_heartbeat()


def settle(listener: Listener, seconds: float = 0.2) -> None:
    """Poll for ``seconds``."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        listener.poll(0.02)


def is_closed(stranger: socket.socket) -> bool:
    stranger.settimeout(END_SECONDS)
    try:
        return stranger.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


REPORT = b'\n{"report": {}}\n'


@pytest.mark.parametrize(
    "message",
    [
        b"0" * 32,
        b'{"token": "guessed", "rank": 3}',
        b"GET / HTTP/1.1",
        b'{"rank": 3}                            ',
        b"[" * 20_000,
        b"\xff" * 40,
        b"x" * 1_000_000,
    ],
    ids=["a token", "JSON", "HTTP", "no token", "deep JSON", "no text", "long"],
)
def test_messages_without_the_token_are_ignored(listener: Listener, tmp_path: Path, message: bytes) -> None:
    with socket.create_connection(("127.0.0.1", listener.port)) as stranger:
        sending = threading.Thread(target=send, args=(stranger, message + REPORT))
        sending.start()
        settle(listener)
        assert is_closed(stranger)
        sending.join(END_SECONDS)
        assert not sending.is_alive()
    assert files(tmp_path) == []


def send(connection: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):  # the listener closes the connection
        connection.sendall(data)


@pytest.mark.parametrize(
    "message",
    [
        b"[" * 20_000,
        b"[]",
        b"5",
        b"\xff",
        b'{"rank": 4}',
        b'{"rank": -1}',
        b'{"rank": "../../x"}',
        b'{"rank": 1}\n{"report": NaN]',
    ],
    ids=["deep JSON", "a list", "a number", "no text", "rank 4 of 4", "rank -1", "a path", "no JSON"],
)
def test_a_wrong_message_ends_only_its_own_connection(listener: Listener, tmp_path: Path, message: bytes) -> None:
    with socket.create_connection(("127.0.0.1", listener.port)) as wrong:
        wrong.sendall(listener.token.encode() + b"\n" + message + REPORT)
        settle(listener)
        assert is_closed(wrong)
    assert not (tmp_path / "report.json").exists()
    assert not list(tmp_path.parent.glob("x*"))
    rank = connect(listener)
    rank.send_report({"iterations": 7})
    settle(listener)
    assert json.loads((tmp_path / "report.json").read_text()) == {"iterations": 7}


def test_the_token_may_arrive_byte_by_byte(listener: Listener, tmp_path: Path) -> None:
    with socket.create_connection(("127.0.0.1", listener.port)) as slow:
        for byte in listener.token.encode() + b'\n{"rank": 2}\n{"report": {}}\n':
            slow.sendall(bytes([byte]))
            listener.poll(0.01)
        settle(listener)
    assert files(tmp_path) == ["report.json"]


def test_a_message_without_an_end_is_bounded(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "MESSAGE_BYTES", 100_000)
    with socket.create_connection(("127.0.0.1", listener.port)) as rank:
        rank.sendall(listener.token.encode() + b'\n{"rank": 2}\n')
        sending = threading.Thread(target=send, args=(rank, b" " * 10_000_000))
        sending.start()
        settle(listener)
        assert is_closed(rank)
        sending.join(END_SECONDS)
    assert files(tmp_path) == []


def test_a_connection_without_a_token_is_closed_after_a_timeout(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "AUTHENTICATE_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", listener.port)) as silent:
        started_at = time.monotonic()
        while time.monotonic() - started_at < 1.0:  # slowly, so that data keeps arriving
            with contextlib.suppress(OSError):
                silent.sendall(b"0")
            listener.poll(0.1)
        assert is_closed(silent)


def test_many_strangers_do_not_block_ranks(listener: Listener, tmp_path: Path) -> None:
    """There are more strangers than may wait, and more than this process may open files."""
    crowd: list[socket.socket] = []
    files_before, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        for _ in range(3 * (2 * RANKS + listening.EXTRA_UNAUTHENTICATED)):
            crowd.append(socket.create_connection(("127.0.0.1", listener.port)))
            if len(crowd) % 50 == 0:
                listener.poll()
        rank = connect(listener)
        settle(listener)
        assert len(listener._selector.get_map()) <= 2 * RANKS + listening.EXTRA_UNAUTHENTICATED + 2
        limit = sum(1 for _ in Path("/proc/self/fd").iterdir()) if Path("/proc/self").exists() else files_before
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        crowd.pop().close()  # frees one file descriptor
        crowd.append(socket.create_connection(("127.0.0.1", listener.port)))
        settle(listener)
        rank.send_report({"iterations": 7})
        settle(listener)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files_before, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        for stranger in crowd:
            stranger.close()
    assert json.loads((tmp_path / "report.json").read_text()) == {"iterations": 7}


def test_strangers_do_not_delay_closing(listener: Listener) -> None:
    with socket.create_connection(("127.0.0.1", listener.port)):
        settle(listener, 0.5)
        started_at = time.monotonic()
        listener.poll_until_closed(END_SECONDS)
        assert time.monotonic() - started_at < END_SECONDS / 2


def test_the_listener_listens_on_its_address_only(listener: Listener) -> None:
    assert listener._server.getsockname()[0] == "127.0.0.1"
    with pytest.raises(OSError):  # noqa: PT011 - refused, or no route
        socket.create_connection(("127.0.0.2", listener.port), END_SECONDS)


def test_an_address_of_another_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem) as caught:
        Listener(tmp_path, "198.51.100.1", RANKS)
    assert caught.value.fields["code"] == "PARALAGG_MPI_ADDRESS"
    assert caught.value.fields["value"] == "198.51.100.1"
    assert "spark.driver.bindAddress" in caught.value.fields["hint"]


def test_a_failing_rank_sends_its_error(listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.chdir("/")
    assert main(["plan.json", "--in", "in", "--out", "out", "--tell", f"127.0.0.1:{listener.port}"]) == 1
    listener.poll(END_SECONDS)
    listener.poll(END_SECONDS)
    error = json.loads((tmp_path / "error-0.json").read_text())
    assert (error["code"], error["rank"], error["host"]) == ("PARALAGG_MPI_RANK_FAILED", 0, socket.gethostname())
    assert "plan.json" in error["message"]
