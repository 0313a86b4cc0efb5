"""What is harmed: the command, a process for each case; or a query of a Spark session that serves many cases."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from campaigns.faults.isolation import HERE, PYTHONPATH
from campaigns.faults.processes import KILL, children, find, send

if TYPE_CHECKING:
    from campaigns.faults.cases import Case

PROGRAM = """.decl start(x: number)
.decl road(x: number, y: number, km: unsigned)
.input start, road
.output dist
dist(x, $MIN(0)) :- start(x).
dist(y, $MIN(d + km)) :- dist(x, d), road(x, y, km).
"""
LENGTHS = {
    "command, local": 20_000,
    "command, mpi": 50,
    "Spark": 1000,
    "DataFrames": 2,
    "offload, local": 50,
    "offload, spark": 50,
}
"""Edges of the chain, and so iterations. More ranks than cores wait for each other by spinning."""
_BACKENDS = {"Spark": "spark", "DataFrames": "dataframe"}
_CODED = re.compile(r"\[?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\]?")
_START_SECONDS = 400
_WARM_RUNS = 2
"""The first query of a session takes some seconds longer."""


class Outcome(NamedTuple):
    """How a run has ended: ``right``, ``error`` (with a code), ``lost`` with its driver, or what must not be."""

    kind: str
    text: str = ""


class Command:
    """``paralagg run`` on ranks or in one process."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self.out = HERE / "out" / "result"
        self._length = LENGTHS[engine]
        self._folder = HERE / f"program-{self._length}"
        if not self._folder.exists():
            self._folder.mkdir()
            (self._folder / "p.dl").write_text(PROGRAM)
            (self._folder / "start.facts").write_text("0\n")
            (self._folder / "road.facts").write_text("".join(f"{i}\t{i + 1}\t1\n" for i in range(self._length)))

    def start(self, case: Case) -> None:
        """Start one process."""
        backend = "local" if case.ranks == 1 else "mpi"
        words = [sys.executable, "-m", "pyspark_paralagg", "run", "p.dl", "-F", ".", "-D", str(self.out), "-q"]
        words += ["--backend", backend]
        if backend == "mpi":
            words += ["--ranks", str(case.ranks), "--conf", "spark.paralagg.mpi.oversubscribe=true"]
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            words,
            cwd=self._folder,
            env={**os.environ, "TMPDIR": str(HERE / "temporary"), "PYTHONPATH": PYTHONPATH},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.root = self._process.pid
        children.add(self.root)
        self._said: list[bytes] = []
        assert self._process.stderr is not None
        threading.Thread(
            target=lambda p: self._said.append(p.read()), args=(self._process.stderr,), daemon=True
        ).start()

    def is_over(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def outcome(self) -> Outcome:
        """Judge the file that it wrote, or what it said."""
        code = self._process.wait()
        until = time.monotonic() + 1  # whoever is left of it may hold its standard error
        while not self._said and time.monotonic() < until:
            time.sleep(0.01)
        children.discard(self.root)
        said = b"".join(self._said).decode(errors="replace").strip()
        file = self.out / "dist.csv"
        if file.exists() and file.read_text() != "".join(f"{i}\t{i}\n" for i in range(self._length + 1)):
            return Outcome("WRONG ROWS", f"{len(file.read_text())} characters")
        if code == 0:
            return Outcome("right") if file.exists() else Outcome("NO ROWS", said)
        # Python itself, which was starting or ending. While it looks for `runpy`, it ends with code 1.
        if code == -signal.SIGINT or (said.endswith("\nKeyboardInterrupt") and "pyspark_paralagg" not in said):
            return Outcome("right" if file.exists() else "error", "interrupted")
        if code < 0:
            return Outcome("lost", f"signal {-code}")
        if file.exists():
            return Outcome("ERROR AND ROWS", said)
        is_coded = (_CODED.search(said) and "Traceback" not in said.split("PARALAGG_")[0]) or code in (129, 130, 143)
        return Outcome("error" if is_coded else "NO CODE", f"{code}: {said}")

    def cancel(self) -> None:
        """Not by a call."""

    def held(self) -> dict[str, Any]:
        """Nothing is kept between runs."""
        return {}

    def close(self) -> None:
        """Nothing is left to close."""


class Session:
    """A Spark session in a process of its own, with two executors."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._length = LENGTHS[engine]
        self.folder = HERE / f"session-{engine.replace(', ', '-')}"
        self.root = 0

    def start(self, case: Case) -> None:
        """Begin a query, in a new session where there is none."""
        del case
        if not self.root:
            self._begin()
        self._send({"query": _BACKENDS.get(self._engine, "mpi"), "length": self._length})
        self._answer: dict[str, Any] | None = None
        self._next("started")

    def is_over(self) -> bool:
        """Whether it has answered, or will never."""
        if self._answer is None:
            try:
                self._answer = self._answers.get_nowait()
            except queue.Empty:
                return self._process.poll() is not None
        return True

    def outcome(self) -> Outcome:
        """Judge the rows or the error."""
        answer = self._answer
        if answer is None or "lost" in answer:
            self.close()
            return Outcome("lost", "the session is gone")
        if "rows" in answer:
            expected = [[i, i] for i in range(self._length + 1)]
            return Outcome("right") if answer["rows"] == expected else Outcome("WRONG ROWS", str(answer["rows"])[:200])
        if not find(self.root, "jvm"):
            self.close()
            return Outcome("lost", answer["error"])
        return Outcome("error" if _CODED.search(answer["error"]) else "NO CODE", answer["error"])

    def cancel(self) -> None:
        """Cancel its jobs."""
        self._send({"cancel": True})

    def held(self) -> dict[str, Any]:
        """What Spark keeps now."""
        if not self.root:
            return {}
        self._send({"probe": True})
        found: dict[str, Any] = self._next("held")
        return {name: value for name, value in found.items() if value}

    def close(self) -> None:
        """End the session; what does not end by itself is found by the caller."""
        if not self.root:
            return
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            send(self.root, KILL)
            self._process.wait()
        children.discard(self.root)
        self.root = 0

    def _begin(self) -> None:
        launcher = "spark" if self._engine == "offload, spark" else "local"
        self.folder.mkdir(exist_ok=True)
        self._log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, str(Path(__file__).parent / "driver.py"), str(HERE), launcher],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": PYTHONPATH, "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        self.root = self._process.pid
        children.add(self.root)
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, args=(self._process.stdout, self._answers), daemon=True).start()
        self._next("ready")
        for _ in range(_WARM_RUNS):
            self._send({"query": _BACKENDS.get(self._engine, "mpi"), "length": self._length})
            self._next("rows")

    @staticmethod
    def _read(lines: Any, answers: queue.Queue[dict[str, Any]]) -> None:
        for line in lines:
            if line.startswith(b"{"):
                answers.put(json.loads(line))
        answers.put({"lost": True})

    def _next(self, name: str) -> Any:
        until = time.monotonic() + _START_SECONDS
        while True:
            answer = self._answers.get(timeout=max(0.1, until - time.monotonic()))
            if name in answer:
                return answer[name]
            if "error" in answer and name == "rows":
                raise RuntimeError(answer["error"])
            if "lost" in answer:
                raise RuntimeError(f"the session ended:\n{Path(self._log.name).read_text()[-3000:]}")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it is gone, which its answers tell
