"""Start the ranks of a run, supervise them, and end all of them when one fails or hangs or the run is cancelled.

- A rank has failed if there is ``OUT/error-<rank>.json`` (``messages``), or if the launcher ends without a report.
- A rank hangs if its file ``OUT/beats/<rank>`` does not change for ``BEAT_SECONDS``. The file holds host and process
  id; the rank's heartbeat process touches it each second, and the rank removes it when it succeeds. A rank also counts
  as hanging if a process of its launcher is stopped for so long, or has ended (``watch``).
- A run is cancelled by SIGTERM, by SIGINT, or by the end of stdin, which also follows the death of the parent.

Clocks of other machines do not matter: the supervisor measures by its own clock how long a file has not changed.
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
from mpi_backend.launch.launchers import environment, launch_command, request_of, worker_command
from mpi_backend.launch.listener import Listener
from mpi_backend.launch.memory_kills import count_memory_kills, sigkill_hint
from mpi_backend.launch.preflight import Problem
from mpi_backend.launch.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BEAT_SECONDS = 10.0
START_SECONDS = 60.0
"""The maximum between the first heartbeats of the first and the last rank; of local ranks, also from start to first."""
END_SECONDS = 2.0
"""The time for a launcher to end its ranks, also on other machines, before its processes here are killed."""
_TICK_SECONDS = 0.2
_TOUCH_SECONDS = 1.0
_TAIL_BYTES = 4000
_CHUNK = 65536

_DEAD_PROCESS = re.compile(r"PID (\d+) RUNNING AT (\S+)")
_EXIT_CODE = re.compile(r"EXIT CODE: (\d+)")
_HYDRA_BANNER = "=" * 20
_SHELL_SIGNAL_BASE = 128
_FULL_DISK_BYTES = 1 << 16
_CHILDLESS_LOOKS = 5
"""Looks (one a second) until mpiexec must have its proxy. If that dies before it connects, mpiexec does not notice."""
_STOPPED = "find out whether SIGSTOP or a debugger stopped it"
_SILENT = "check whether it was stopped, its machine or network failed, or the machine swaps"
_PROXY = "HYDRA_LAUNCH: "


class Cancelled(Exception):  # noqa: N818 - a cancelled run has no error
    """The parent has cancelled the run."""


class Supervisor:
    """One run of ranks. ``send_event`` sends an event to the parent."""

    def __init__(self, spec: Mapping[str, Any], send_event: Callable[[Mapping[str, Any]], None]) -> None:
        self._send_event = send_event
        self._out = Path(spec["out"])
        self._listener: Listener | None = None
        if spec.get("shared") is False:
            self._listener = Listener(self._out, spec.get("bind") or spec["address"], spec["ranks"])
            address = f"{spec['address']}:{self._listener.port}"
            spec = {**spec, "tell": address, "token": self._listener.token}
        self._spec = spec
        self._heartbeats = Heartbeats(self._out / "beats", spec["ranks"], is_local=spec["launcher"] == "local")
        self._log = self._out / "ranks.log"
        self._partial_line = b""
        self._touched_at = 0.0
        self._failed_at: float | None = None
        self._watch = Watch(BEAT_SECONDS)
        self._kills_before = count_memory_kills()

    def run(self) -> None:
        """Run until all ranks succeed. Raise ``Problem`` or ``Cancelled`` otherwise. No process of the run is left."""
        (self._out / "beats").mkdir(parents=True, exist_ok=True)
        self._touch()
        process_tree.adopt_orphans()
        leftovers.remove_old()
        with self._log.open("wb") as log:
            ranks = subprocess.Popen(  # noqa: S603 - the user's own launcher
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
        """Read the launcher's output until stdout and the process have ended. Errors sent last still count."""
        with selectors.SelectSelector() as selector:
            output = cast("IO[bytes]", ranks.stdout)
            selector.register(output, selectors.EVENT_READ)
            selector.register(0, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select(_TICK_SECONDS)}
                if 0 in ready and not os.read(0, _CHUNK):
                    raise Cancelled
                if output.fileno() in ready:
                    chunk = os.read(output.fileno(), _CHUNK)
                    self._read_output(chunk)
                    if not chunk:
                        break
                if ranks.poll() is not None:
                    break
                self._tick(ranks.pid)
        code = ranks.wait(END_SECONDS + BEAT_SECONDS)
        if self._listener is not None:
            self._listener.poll_until_closed(END_SECONDS)
        self._check_errors()
        if code != 0 or not (self._out / "report.json").exists():
            raise self._ended_badly(code)

    def _tick(self, launcher: int) -> None:
        now = time.monotonic()
        if now - self._touched_at > _TOUCH_SECONDS:
            self._touch()
        if self._listener is not None:
            self._listener.poll()
        # A rank that has sent its error ends the others. If that hangs, the supervisor ends them.
        if self._failed_at is None and self._errors():
            self._failed_at = now
        if self._failed_at is not None and now - self._failed_at > END_SECONDS:
            self._check_errors()
        if self._watch.look(now):
            problem = self._problem_of_processes(launcher)
            if problem is not None:
                self._check_errors()  # a rank that has failed ends the launcher's processes, in any order
                raise problem
        self._heartbeats.check(now)

    def _problem_of_processes(self, launcher: int) -> Problem | None:
        """Return the problem of a process of the launcher that is stopped or killed: the launcher notices neither."""
        stopped = self._watch.stopped()
        if stopped is not None:
            rank = self._heartbeats.rank_of(stopped.pid, socket.gethostname(), range(self._spec["ranks"]))
            who = f"process {stopped.pid} of the run" if rank is None else "a rank"
            return self._heartbeats.problem(rank, f"{who} has been stopped for {BEAT_SECONDS:.0f} s", _STOPPED)
        is_mpiexec = self._spec["launcher"] == "local" and request_of(self._spec).needs_mpi
        if is_mpiexec and self._watch.childless_looks(launcher) > _CHILDLESS_LOOKS:
            return self._heartbeats.problem(None, "the launcher's process that starts the ranks was killed", None)
        orphan = self._watch.orphan(worker_command(self._spec), launcher)
        if orphan is None:
            return None
        rank = self._heartbeats.rank_of(orphan.pid, socket.gethostname(), range(self._spec["ranks"]))
        return self._heartbeats.problem(rank, "the launcher's process that started a rank was killed", None)

    def _touch(self) -> None:
        self._touched_at = time.monotonic()
        (self._out / "beats" / "supervisor").touch()

    def _read_output(self, chunk: bytes) -> None:
        """Send events for rank 0's progress and for proxies that hydra wants started. Log all other lines."""
        *lines, self._partial_line = (self._partial_line + chunk).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            if text.startswith(_PROXY):
                self._send_event({"event": "proxy", "argv": text.removeprefix(_PROXY).split()})
                continue
            with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                event = json.loads(text)
                if event["event"] == "progress":
                    self._send_event(event)
                    continue
            with self._log.open("ab") as log:
                log.write(line + b"\n")

    def _errors(self) -> list[Path]:
        return sorted(self._out.glob("error-*.json"), key=lambda path: path.stat().st_mtime_ns)

    def _check_errors(self) -> None:
        """Raise the error of the rank that failed first, if there is one."""
        for path in self._errors():
            error = json.loads(path.read_text())
            problem = Problem(error.get("code", "PARALAGG_MPI_RANK_FAILED"), error.get("message", ""), kind="run")
            problem.fields |= error
            raise problem

    def _ended_badly(self, code: int) -> Problem:
        """Return the problem of a rank that sent no error: it was killed, did not start, or could not write."""
        if shutil.disk_usage(self._out).free < _FULL_DISK_BYTES:
            return Problem(
                "PARALAGG_MPI_STAGING",
                f"the disk of the staging directory {self._out} is full",
                value=str(self._out),
                hint="free space on it, or set spark.paralagg.mpi.stagingDir or TMPDIR to another folder",
            )
        text = self._tail()
        dead, exit_code = _DEAD_PROCESS.search(text), _EXIT_CODE.search(text)
        rank = host = None
        if dead:
            rank = self._heartbeats.rank_of(int(dead[1]), dead[2], self._ranks_at(dead[2]))
            host = dead[2] if rank is None else self._heartbeats.host(rank)
        elif self._spec["ranks"] == 1:
            rank, host = 0, self._heartbeats.host(0)
        number = _signal_of(int(exit_code[1]) if exit_code else code, is_of_hydra=dead is not None)
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
            traceback=text.partition(_HYDRA_BANNER)[0].strip() or None,
        )

    def _hint(self, host: str | None, *, is_launcher: bool) -> str:
        is_local = host == socket.gethostname() if host else is_launcher or self._spec["launcher"] == "local"
        return sigkill_hint(self._kills_before, count_memory_kills(), is_local=is_local)

    def _ranks_at(self, name: str) -> range:
        """Return the ranks on a host, by hydra's name for it; all ranks if no host of the SPEC has it."""
        first = 0
        for host in self._spec.get("hosts", ()):
            host_name, _, slots = host.rpartition(":")
            if host_name == name:
                return range(first, first + int(slots))  # hydra numbers ranks in the order of the hosts
            first += int(slots)
        return range(self._spec["ranks"])

    def _tail(self) -> str:
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - _TAIL_BYTES))
            return log.read().decode(errors="replace").strip()


def _signal_of(code: int, *, is_of_hydra: bool) -> int:
    """Return the signal that an exit code of Python, hydra or a shell stands for; 0 if it stands for none."""
    if code < 0 or (is_of_hydra and code < _SHELL_SIGNAL_BASE):
        return abs(code)
    return code - _SHELL_SIGNAL_BASE if _SHELL_SIGNAL_BASE < code < _SHELL_SIGNAL_BASE + signal.NSIG else 0


class Heartbeats:
    """The heartbeat files of all ranks."""

    def __init__(self, folder: Path, ranks: int, *, is_local: bool) -> None:
        self._folder = folder
        self._ranks = range(ranks)
        self._last_changes: dict[int, tuple[int, float]] = {}
        self._process_infos: dict[int, dict[str, Any]] = {}
        self._first_at = time.monotonic() if is_local else None
        self._checked_at = time.monotonic()

    def check(self, now: float) -> None:
        """Raise ``Problem`` for a rank that has sent no heartbeat for too long."""
        # A late check: this process was stopped, and perhaps the ranks with it.
        if now - self._checked_at > _TOUCH_SECONDS + _TICK_SECONDS:
            self._last_changes = {rank: (changed, now) for rank, (changed, _) in self._last_changes.items()}
        self._checked_at = now
        for rank in self._ranks:
            try:
                changed = (self._folder / str(rank)).stat().st_mtime_ns
            except OSError:
                self._missing(rank, now)
                continue
            last = self._last_changes.get(rank)
            if last is None or last[0] != changed:
                self._last_changes[rank] = (changed, now)
                if rank not in self._process_infos:
                    self._read(rank)
                self._first_at = now if self._first_at is None else self._first_at
            elif now - last[1] > BEAT_SECONDS:
                raise self.problem(rank, f"a rank sent no heartbeat for {BEAT_SECONDS:.0f} s", _SILENT)

    def rank_of(self, process: int, host: str, among: range) -> int | None:
        """Return the rank with this process id and host. Without such a host the id alone counts, if it is unique."""
        for rank in among:
            self._read(rank)
        by_id = [rank for rank in among if self._process_infos.get(rank, {}).get("pid") == process]
        candidates = [rank for rank in by_id if self._process_infos[rank].get("host") == host] or by_id
        return candidates[0] if len(candidates) == 1 else None

    def host(self, rank: int) -> str | None:
        """Return the host of ``rank``, if its heartbeat file has it."""
        self._read(rank)
        return self._process_infos.get(rank, {}).get("host")

    def _read(self, rank: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            info = json.loads((self._folder / str(rank)).read_text())
            self._process_infos[rank] = info if isinstance(info, dict) else {}

    def _missing(self, rank: int, now: float) -> None:
        """Raise ``Problem`` for a rank without a file if it has not started in time. A rank that had one has ended."""
        if rank not in self._last_changes and self._first_at is not None and now - self._first_at > START_SECONDS:
            raise self.problem(rank, f"a rank did not start within {START_SECONDS:.0f} s", _SILENT)

    def problem(self, rank: int | None, message: str, hint: str | None) -> Problem:
        """Return the problem that a rank is lost, with the rank and its host if they are known."""
        return Problem(
            "PARALAGG_MPI_RANK_FAILED",
            message,
            kind="run",
            value=rank,
            hint=hint,
            rank=rank,
            host=None if rank is None else self.host(rank),
        )


def _end(ranks: subprocess.Popen[bytes], watch: Watch) -> None:
    """Terminate the launcher, so that it ends ranks on other machines, then kill its remaining processes here."""
    if ranks.poll() is None:
        ranks.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            ranks.wait(END_SECONDS)
    if ranks.poll() is None:
        ranks.kill()
    watch.kill_all()
    ranks.wait()
    cast("IO[bytes]", ranks.stdout).close()
