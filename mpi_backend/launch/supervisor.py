"""Watches ranks from their start to their end, and ends all of them when one fails, hangs, or is no longer wanted.

A rank fails: there is ``OUT/error-<rank>.json`` (``signs``), or the launcher ends without a report. It hangs: its file
``OUT/beats/<rank>`` (host and process id, touched each second, removed at a good end) stays as it is for
``BEAT_SECONDS``, or one of its launcher's processes is stopped for so long, or has ended (``watch``). No longer wanted:
SIGTERM, SIGINT, or the end of our stdin, by which a parent's death is known too.
Clocks of other machines do not matter: what is timed is how long a file has not changed, by our own clock.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from mpi_backend.launch import leftovers, process_tree
from mpi_backend.launch.killer import hint, killed_for_memory
from mpi_backend.launch.launchers import environment, launch_command, request_of, worker_command
from mpi_backend.launch.listener import Listener
from mpi_backend.launch.preflight import Problem
from mpi_backend.launch.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BEAT_SECONDS = 10.0
START_SECONDS = 60.0
"""Between the first rank's first beat and the last rank's; of a local launcher, between its start and the first too."""
END_SECONDS = 2.0
"""What a launcher is given to end its ranks, on other machines too, before all of its processes here are killed."""
_TICK_SECONDS = 0.2
_TOUCH_SECONDS = 1.0
_TAIL_BYTES = 4000
_CHUNK = 65536

_DEAD_PROCESS = re.compile(r"PID (\d+) RUNNING AT (\S+)")
_EXIT_CODE = re.compile(r"EXIT CODE: (\d+)")
_BANNER = "=" * 20
_SHELLS = 128
_LITTLE_BYTES = 1 << 16
_CHILDLESS_LOOKS = 5
"""How long mpiexec may take to start its proxy; it ends with it, unless that was killed before it could connect."""
_STOPPED = "SIGSTOP or a debugger has stopped it"
_SILENT = "it was stopped, its machine or the way to it is gone, or the machine swaps"
_PROXY = "HYDRA_LAUNCH: "


class Cancelled(Exception):  # noqa: N818 - nothing went wrong
    """Whoever wanted the run wants it no more."""


class Supervisor:
    """One run of ranks. ``tell`` takes the events that the parent reads."""

    def __init__(self, spec: Mapping[str, Any], tell: Callable[[Mapping[str, Any]], None]) -> None:
        self._tell = tell
        self._out = Path(spec["out"])
        self._listener: Listener | None = None
        if spec.get("shared") is False:
            self._listener = Listener(self._out, spec.get("bind") or spec["address"], spec["ranks"])
            place = f"{spec['address']}:{self._listener.port}"
            spec = {**spec, "tell": place, "token": self._listener.token}
        self._spec = spec
        self._beats = Beats(self._out / "beats", spec["ranks"], is_local=spec["launcher"] == "local")
        self._log = self._out / "ranks.log"
        self._lines = b""
        self._touched = 0.0
        self._failed_at: float | None = None
        self._watch = Watch(BEAT_SECONDS)
        self._killed_before = killed_for_memory()

    def run(self) -> None:
        """Returns when all ranks have ended well. Raises ``Problem`` or ``Cancelled``; no process is left then."""
        (self._out / "beats").mkdir(parents=True, exist_ok=True)
        self._touch()
        process_tree.adopt_orphans()
        leftovers.remove_old()
        with self._log.open("wb") as log:
            ranks = subprocess.Popen(  # noqa: S603 - the launcher that the user asked for
                launch_command(self._spec),
                env={**os.environ, **environment(self._spec)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                preexec_fn=process_tree.end_with_parent,  # noqa: PLW1509 - this process has one thread
            )
        try:
            self._follow(ranks)
        finally:
            if self._listener is not None:
                self._listener.close()
            _end(ranks, self._watch)

    def _follow(self, ranks: subprocess.Popen[bytes]) -> None:
        """Until stdout has ended and the process too: what a rank said last counts."""
        with selectors.SelectSelector() as ears:
            output = cast("IO[bytes]", ranks.stdout)
            ears.register(output, selectors.EVENT_READ)
            ears.register(0, selectors.EVENT_READ)
            while True:
                heard = {key.fd for key, _ in ears.select(_TICK_SECONDS)}
                if 0 in heard and not os.read(0, _CHUNK):
                    raise Cancelled
                if output.fileno() in heard:
                    chunk = os.read(output.fileno(), _CHUNK)
                    self._hear(chunk)
                    if not chunk:
                        break
                if ranks.poll() is not None:
                    break
                self._tick(ranks.pid)
        code = ranks.wait(END_SECONDS + BEAT_SECONDS)
        if self._listener is not None:
            self._listener.hear_all(END_SECONDS)
        self._check_errors()
        if code != 0 or not (self._out / "report.json").exists():
            raise self._ended_badly(code)

    def _tick(self, launcher: int) -> None:
        now = time.monotonic()
        if now - self._touched > _TOUCH_SECONDS:
            self._touch()
        if self._listener is not None:
            self._listener.hear()
        # A rank that has told its error ends the others itself; where that hangs, we do.
        if self._failed_at is None and self._errors():
            self._failed_at = now
        if self._failed_at is not None and now - self._failed_at > END_SECONDS:
            self._check_errors()
        if self._watch.look(now):
            self._check_processes(launcher)
        self._beats.check(now)

    def _check_processes(self, launcher: int) -> None:
        """Raise ``Problem`` for what the launcher does not notice: its own processes stopped or killed."""
        stopped = self._watch.stopped()
        if stopped is not None:
            rank = self._beats.rank_of(stopped.pid, socket.gethostname(), range(self._spec["ranks"]))
            who = f"process {stopped.pid} of the run" if rank is None else "a rank"
            raise self._beats.problem(rank, f"{who} has been stopped for {BEAT_SECONDS:.0f} s", _STOPPED)
        is_mpiexec = self._spec["launcher"] == "local" and request_of(self._spec).needs_mpi
        if is_mpiexec and self._watch.childless_looks(launcher) > _CHILDLESS_LOOKS:
            raise self._beats.problem(None, "the launcher's process that starts the ranks was killed", None)
        orphan = self._watch.orphan(worker_command(self._spec), launcher)
        if orphan is not None:
            rank = self._beats.rank_of(orphan.pid, socket.gethostname(), range(self._spec["ranks"]))
            raise self._beats.problem(rank, "the launcher's process that started a rank was killed", None)

    def _touch(self) -> None:
        self._touched = time.monotonic()
        (self._out / "beats" / "supervisor").touch()

    def _hear(self, chunk: bytes) -> None:
        """Whole lines of rank 0, and of hydra where someone else starts its proxies; anything else goes to the log."""
        *lines, self._lines = (self._lines + chunk).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            if text.startswith(_PROXY):
                self._tell({"event": "proxy", "argv": text.removeprefix(_PROXY).split()})
                continue
            with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                event = json.loads(text)
                if event["event"] == "progress":
                    self._tell(event)
                    continue
            with self._log.open("ab") as log:
                log.write(line + b"\n")

    def _errors(self) -> list[Path]:
        return sorted(self._out.glob("error-*.json"), key=lambda path: path.stat().st_mtime_ns)

    def _check_errors(self) -> None:
        """Raises what the first rank told that failed."""
        for path in self._errors():
            told = json.loads(path.read_text())
            problem = Problem(told.get("code", "PARALAGG_MPI_RANK_FAILED"), told.get("message", ""), kind="run")
            problem.told |= told
            raise problem

    def _ended_badly(self, code: int) -> Problem:
        """No rank has told why: it was killed, could not even start, or could not write what it had to tell."""
        if shutil.disk_usage(self._out).free < _LITTLE_BYTES:
            return Problem(
                "PARALAGG_MPI_STAGING",
                f"the disk of the staging directory {self._out} is full",
                value=str(self._out),
                hint="free space there, or name another folder: spark.paralagg.mpi.stagingDir, or TMPDIR",
            )
        text = self._tail()
        dead, given = _DEAD_PROCESS.search(text), _EXIT_CODE.search(text)
        rank = host = None
        if dead:
            rank = self._beats.rank_of(int(dead[1]), dead[2], self._ranks_at(dead[2]))
            host = dead[2] if rank is None else self._beats.host(rank)
        elif self._spec["ranks"] == 1:
            rank, host = 0, self._beats.host(0)
        number = _signal_of(int(given[1]) if given else code, is_of_hydra=dead is not None)
        what = f"was killed by signal {number}" if number else f"ended with exit code {code} and without a result"
        is_launcher = dead is None and code < 0 and request_of(self._spec).needs_mpi
        return Problem(
            "PARALAGG_MPI_RANK_FAILED",
            f"{'the launcher of the ranks' if is_launcher else 'a rank'} {what}",
            kind="run",
            value=number or code,
            hint=self._hint(host, is_launcher=is_launcher) if number == signal.SIGKILL else None,
            rank=rank,
            host=host,
            traceback=text.partition(_BANNER)[0].strip() or None,
        )

    def _hint(self, host: str | None, *, is_launcher: bool) -> str:
        is_here = host == socket.gethostname() if host else is_launcher or self._spec["launcher"] == "local"
        return hint(self._killed_before, killed_for_memory(), is_here=is_here)

    def _ranks_at(self, name: str) -> range:
        """Of a host as hydra calls it: all, where the hosts are not ours to name."""
        first = 0
        for host in self._spec.get("hosts", ()):
            known, _, slots = host.rpartition(":")
            if known == name:
                return range(first, first + int(slots))  # as hydra numbers them
            first += int(slots)
        return range(self._spec["ranks"])

    def _tail(self) -> str:
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - _TAIL_BYTES))
            return log.read().decode(errors="replace").strip()


def _signal_of(code: int, *, is_of_hydra: bool) -> int:
    """The signal that an exit code stands for: as Python, hydra and shells tell it; 0: none."""
    if code < 0 or (is_of_hydra and code < _SHELLS):
        return abs(code)
    return code - _SHELLS if _SHELLS < code < _SHELLS + signal.NSIG else 0


class Beats:
    """Which ranks live, by their files."""

    def __init__(self, folder: Path, ranks: int, *, is_local: bool) -> None:
        self._folder = folder
        self._ranks = range(ranks)
        self._seen: dict[int, tuple[int, float]] = {}
        self._said: dict[int, dict[str, Any]] = {}
        self._first = time.monotonic() if is_local else None
        self._checked = time.monotonic()

    def check(self, now: float) -> None:
        """Raises ``Problem`` for a rank whose heart has stopped."""
        if now - self._checked > _TOUCH_SECONDS + _TICK_SECONDS:  # we were stopped ourselves, as the ranks perhaps
            self._seen = {rank: (changed, now) for rank, (changed, _) in self._seen.items()}
        self._checked = now
        for rank in self._ranks:
            try:
                changed = (self._folder / str(rank)).stat().st_mtime_ns
            except OSError:
                self._missing(rank, now)
                continue
            known = self._seen.get(rank)
            if known is None or known[0] != changed:
                self._seen[rank] = (changed, now)
                if rank not in self._said:
                    self._read(rank)
                self._first = now if self._first is None else self._first
            elif now - known[1] > BEAT_SECONDS:
                raise self.problem(rank, f"a rank has not given a sign of life for {BEAT_SECONDS:.0f} s", _SILENT)

    def rank_of(self, process: int, host: str, among: range) -> int | None:
        """The rank that runs as ``process`` there: containers on several machines may well have the same."""
        for rank in among:
            self._read(rank)
        by_id = [rank for rank in among if self._said.get(rank, {}).get("pid") == process]
        there = [rank for rank in by_id if self._said[rank].get("host") == host] or by_id
        return there[0] if len(there) == 1 else None

    def host(self, rank: int) -> str | None:
        """Where ``rank`` runs, if it has said so."""
        self._read(rank)
        return self._said.get(rank, {}).get("host")

    def _read(self, rank: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            said = json.loads((self._folder / str(rank)).read_text())
            self._said[rank] = said if isinstance(said, dict) else {}

    def _missing(self, rank: int, now: float) -> None:
        """Ended well, or not yet born."""
        if rank not in self._seen and self._first is not None and now - self._first > START_SECONDS:
            raise self.problem(rank, f"a rank has not started within {START_SECONDS:.0f} s", _SILENT)

    def problem(self, rank: int | None, what: str, hint: str | None) -> Problem:
        """Name a rank that the run has lost, if it is known which, and where it ran."""
        return Problem(
            "PARALAGG_MPI_RANK_FAILED",
            what,
            kind="run",
            value=rank,
            hint=hint,
            rank=rank,
            host=None if rank is None else self.host(rank),
        )


def _end(ranks: subprocess.Popen[bytes], watch: Watch) -> None:
    """Ends the launcher gently, so that it ends ranks elsewhere, then everything that is left here."""
    if ranks.poll() is None:
        ranks.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            ranks.wait(END_SECONDS)
    if ranks.poll() is None:
        ranks.kill()
    watch.kill_all()
    ranks.wait()
    cast("IO[bytes]", ranks.stdout).close()
