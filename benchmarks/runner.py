"""Runs workers, one at a time, and keeps what they say: time by their own clock, memory as seen from outside.

Turns are interleaved (every system once, then every system again), so that a slow spell of the machine does not hit
one system alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any

from benchmarks import process_tree
from benchmarks.datasets import PROJECT, Graph
from benchmarks.queries import same
from benchmarks.worker import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLE_SECONDS = 0.05
SLOW_SECONDS = 30.0  # what takes longer is not repeated: noise is small against it


@dataclass(frozen=True)
class Settings:
    """Where graphs lie, turns, runs in a session (the last counts), seconds that a worker may take, the JVM's heap."""

    cache: Path
    repeat: int = 3
    runs: int = 2
    cap_seconds: float = 300.0
    memory: str = "8g"


@dataclass
class Measurement:
    """All turns of one system at one query on one graph. `failure`: why a turn went wrong, if one did."""

    query: str
    graph: str
    system: str
    version: str = ""
    turns: list[dict[str, Any]] = field(default_factory=list)  # the last run of each turn's session
    first: list[float] = field(default_factory=list)  # whole seconds of each session's first run
    memory_mb: list[float] = field(default_factory=list)
    before_mb: list[float] = field(default_factory=list)  # what was resident before each session's first run
    failure: str | None = None
    agrees: bool | None = None

    @property
    def checksum(self) -> list[float] | None:
        """What the last turn found; None if it answers nothing."""
        return (self.turns[-1]["checksum"] or None) if self.turns else None

    def whole(self) -> float | None:
        """Least seconds from Parquet to checksum."""
        return min((turn["whole"] for turn in self.turns), default=None)

    def whole_median(self) -> float | None:
        """Median seconds from Parquet to checksum."""
        return median(turn["whole"] for turn in self.turns) if self.turns else None

    def loop(self) -> float | None:
        """Least seconds of the loop alone."""
        return min((turn["loop"] for turn in self.turns if turn["loop"] is not None), default=None)

    def grown_mb(self) -> float | None:
        """Least megabytes by which a session's memory grew from before its first run to its peak."""
        pairs = zip(self.memory_mb, self.before_mb, strict=True)
        return min((peak - before for peak, before in pairs), default=None)

    def fact(self, name: str) -> float | None:
        """Return a number that only some systems give, such as the rounds."""
        return self.turns[-1]["facts"].get(name) if self.turns else None

    def to_json(self) -> dict[str, Any]:
        """Return all that was seen, for the raw data."""
        return asdict(self)


def measure(query: str, graph: Graph, systems: list[str], settings: Settings) -> Iterator[Measurement]:
    """Ask every system the query, in turns; yield one measurement a system, answers compared."""
    found = {system: Measurement(query, graph.name, system) for system in systems}
    for _ in range(settings.repeat):
        for measurement in found.values():
            if measurement.failure is None and (measurement.whole() or 0.0) < SLOW_SECONDS:
                _turn(measurement, settings)
    compare(list(found.values()))
    yield from found.values()


def _turn(measurement: Measurement, settings: Settings) -> None:
    with TemporaryDirectory() as directory:
        output = Path(directory) / "answer.json"
        cache = str(settings.cache)
        task = Task(
            measurement.system, measurement.query, measurement.graph, cache, settings.runs, settings.memory, str(output)
        )
        log = Path(directory) / "log"
        with log.open("wb") as stream:
            peak, failure = _watch(task, stream.fileno(), settings.cap_seconds)
        if failure is None and not output.exists():
            failure = _last_error(log.read_text(errors="replace"))
        if failure is not None:
            measurement.failure = failure
            return
        answer = json.loads(output.read_text())
    measurement.version = answer["version"]
    measurement.turns.append(answer["runs"][-1])
    measurement.first.append(answer["runs"][0]["whole"])
    measurement.memory_mb.append(peak)
    measurement.before_mb.append(answer["before_mb"])
    # Every run of a session must find the same, the one that warms up included.
    if any(not same(run["checksum"], answer["runs"][0]["checksum"]) for run in answer["runs"]):
        measurement.failure = "two runs in one session found different answers"


def _watch(task: Task, log: int, cap_seconds: float) -> tuple[float, str | None]:
    """Run a worker to its end or to the cap; return its peak memory in megabytes and why it failed, if it did."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-m", "benchmarks.worker", json.dumps(asdict(task))]
    worker = subprocess.Popen(  # noqa: S603 (our own module)
        command, cwd=PROJECT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
    )
    peak, deadline, failure = 0.0, monotonic() + cap_seconds, None
    try:
        while True:
            peak = max(peak, *process_tree.resident_megabytes(worker.pid))
            try:
                worker.wait(SAMPLE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if monotonic() > deadline:
                    failure = f"over {cap_seconds:.0f} s"
                    break
    finally:
        process_tree.end(worker.pid)
        worker.wait()
    return peak, failure


def _last_error(log: str) -> str:
    """Return the line of a worker's log that most likely says what went wrong."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line.split(":")[0] or "PARALAGG_" in line]
    return (named or lines or ["the worker ended without a message"])[-1][:300]


def compare(measurements: list[Measurement]) -> None:
    """Mark who agrees with the answer that most systems found. One answer alone is neither right nor wrong."""
    answered = [(measurement, measurement.checksum) for measurement in measurements if measurement.checksum is not None]
    if len(answered) < 2:  # noqa: PLR2004 (comparing takes two)
        return

    def support(candidate: list[float]) -> int:
        return sum(same(candidate, checksum) for _, checksum in answered)

    accepted = max((checksum for _, checksum in answered), key=support)
    for measurement, checksum in answered:
        # Two against one is an answer; one against one leaves both in doubt.
        measurement.agrees = same(checksum, accepted) and (support(accepted) > 1)
