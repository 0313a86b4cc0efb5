"""Runs cases and judges them."""

from __future__ import annotations

import queue
import shutil
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from campaigns.faults.harm import Harm
from campaigns.faults.isolation import HERE
from campaigns.faults.processes import KILL, command, of_runs, reap, send
from campaigns.faults.workload import Command, Outcome, Session

from mpi_backend.launch.process_tree import descendants

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator

    from campaigns.faults.cases import Case

LIMIT_SECONDS = 15.0
"""After the fault, beside the time that an undisturbed run takes: Spark begins anew where it has lost an executor."""
CANCEL_SECONDS = 4.0
"""A run that is cancelled within its last moments may still succeed."""
EXECUTOR_SECONDS = 45.0
"""For Spark to notice a stopped executor (8 s), to kill it (10 s), and to start another: times of its own."""
_LEFT_SECONDS = 10.0
_TICK_SECONDS = 0.01
_CALIBRATIONS = 3
_LOST_FOLDERS = ("blockmgr-*", "spark-*")


@dataclass
class Result:
    """One case: how it ended, seconds from the fault to the end, and what was left."""

    case: Case
    outcome: Outcome
    is_hit: bool = True
    seconds: float = 0.0
    limit: float = LIMIT_SECONDS
    left: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """What must not be."""
        found = [f"{self.outcome.kind}: {self.outcome.text}"] if self.outcome.kind.isupper() else []
        if self.case.fault == "blink" and self.outcome.kind != "right":
            found.append(f"a short stop was not survived: {self.outcome}")
        if self.case.fault == "cancel" and self.outcome.kind == "right" and self.seconds > CANCEL_SECONDS:
            found.append(f"it was cancelled, and went on for {self.seconds:.1f} s")
        if self.seconds > self.limit:
            found.append(f"it went on for {self.seconds:.1f} s after the fault")
        return found + [f"left: {what}" for what in self.left]


class Campaign:
    """All cases, one after the other."""

    def __init__(self, random: random.Random) -> None:
        self._random = random
        self._workloads: dict[str, Command | Session] = {}
        self._usual: dict[tuple[str, int], list[float]] = {}

    def run(self, cases: Iterable[Case]) -> Iterator[Result]:
        """Yield results as they come."""
        for case in cases:
            workload = self._workload(case.engine)
            try:
                yield self._run(case, workload, self._usual_seconds(case, workload))
            except (RuntimeError, queue.Empty) as problem:  # a run without a fault, or a session that does not start
                _kill(workload.root)
                workload.close()
                yield Result(case, Outcome("NO RUN", f"{type(problem).__name__}: {problem}"), is_hit=False)

    def close(self) -> None:
        """End all sessions."""
        for workload in self._workloads.values():
            workload.close()

    def _workload(self, engine: str) -> Command | Session:
        if engine not in self._workloads:
            self._workloads[engine] = Command(engine) if engine.startswith("command") else Session(engine)
        return self._workloads[engine]

    def _usual_seconds(self, case: Case, workload: Command | Session) -> float:
        """How long a run takes that nobody disturbs: the median of the last ones."""
        known = self._usual.setdefault((case.engine, case.ranks), [])
        while len(known) < _CALIBRATIONS:
            known.append(self._undisturbed(case, workload))
        return statistics.median(known[-_CALIBRATIONS:])

    def _undisturbed(self, case: Case, workload: Command | Session) -> float:
        """Run once without a fault, which has to be right; return the seconds that it took."""
        workload.start(case)
        began = time.monotonic()
        while not workload.is_over():
            time.sleep(_TICK_SECONDS)
        seconds = time.monotonic() - began
        outcome = workload.outcome()
        if outcome.kind != "right":
            raise RuntimeError(f"an undisturbed run of {case.engine} has failed: {outcome}")
        (HERE / "out" / "result" / "dist.csv").unlink(missing_ok=True)
        return seconds

    def _run(self, case: Case, workload: Command | Session, usual: float) -> Result:
        workload.start(case)
        began = time.monotonic()
        harm = Harm(case, workload, self._random)
        limit = LIMIT_SECONDS + 2 * usual + (EXECUTOR_SECONDS if case.target == "executor" else 0.0)
        there = _harmed(case, workload, harm, began, usual, limit)
        ended = time.monotonic()
        is_over = workload.is_over()
        harm.undo()
        if is_over:
            outcome = workload.outcome()
        else:
            outcome = Outcome("HUNG", "; ".join(f"{p} {c[:80]}" for p, c in of_runs().items()))
            _kill(workload.root)
            while not workload.is_over():
                time.sleep(_TICK_SECONDS)
            workload.outcome()
        if harm.at is None and outcome.kind == "right":
            self._usual[case.engine, case.ranks].append(ended - began)
        left = self._left(case, workload, there if outcome.kind == "lost" else None)
        result = Result(case, outcome, harm.at is not None, ended - harm.at if harm.at else 0.0, limit, left)
        self._clear()
        return result

    def _left(self, case: Case, workload: Command | Session, gone: set[int] | None) -> list[str]:
        """Name what is still there a little later. ``gone`` are processes that have to end with their lost driver.

        What a killed driver or executor cannot remove itself, and no process that survives it, the next run removes.
        """
        left = _within(_LEFT_SECONDS, lambda: _processes(gone or set()))
        if gone is not None:
            self._clear_spark(workload)
            if _files():
                self._undisturbed(case, workload)
        elif case.target == "executor" and _within(_LEFT_SECONDS, _file_names):
            self._undisturbed(case, workload)
        left += _within(_LEFT_SECONDS, _file_names)
        return left + _within(_LEFT_SECONDS, lambda: [f"in Spark: {held}" for held in workload.held().items()])

    @staticmethod
    def _clear() -> None:
        """Begin the next case with nothing; what was left has been told."""
        for process in of_runs():
            send(process, KILL)
        for path in [*_files(), HERE / "out" / "result"]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    @staticmethod
    def _clear_spark(workload: Command | Session) -> None:
        """Remove Spark's own folders, which nobody removes behind a killed JVM, with all that is in them."""
        if isinstance(workload, Session) and not workload.root:
            for pattern in _LOST_FOLDERS:
                for folder in (workload.folder / "local").glob(pattern):
                    shutil.rmtree(folder, ignore_errors=True)


def _harmed(  # noqa: PLR0913, PLR0917 - all that a run is
    case: Case, workload: Command | Session, harm: Harm, began: float, usual: float, limit: float
) -> set[int]:
    """Do the harm in its time, and wait for the end; return the processes that were there at that time."""
    there: set[int] = set()
    while not workload.is_over():
        now = time.monotonic()
        if harm.at is None:
            if now - began >= case.moment * usual:
                there = {child.pid for child in descendants(workload.root)}
                harm.attempt()
            elif now - began > 2 * limit:
                break
        harm.tick()
        if harm.at is not None and now - harm.at > limit + LIMIT_SECONDS:
            break
        time.sleep(_TICK_SECONDS)
    return there


def _within(seconds: float, find: Callable[[], list[str]]) -> list[str]:
    """Wait until nothing is found, or for so long; return what is found still."""
    until = time.monotonic() + seconds
    while (found := find()) and time.monotonic() < until:
        time.sleep(0.05)
    return found


def _processes(gone: set[int]) -> list[str]:
    reap()
    left = {**of_runs(), **{p: command(p) for p in gone}}
    return [f"process {words[:120]}" for words in left.values() if words]


def _files() -> list[Path]:
    """Whatever a run has made and has to remove."""
    found = [*Path("/dev/shm").iterdir(), *Path("/tmp").glob("hydra_*"), *Path("/tmp").glob("*paralagg*")]  # noqa: S108
    found += [*(HERE / "temporary").iterdir(), *HERE.glob("session-*/local/**/paralagg-*")]
    if (HERE / "staging").exists():
        found += (HERE / "staging").iterdir()
    result = HERE / "out" / "result"
    if result.exists():
        found += [p for p in result.iterdir() if p.name != "dist.csv"]
    return found


def _file_names() -> list[str]:
    return [f"file {path}" for path in _files()]


def _kill(root: int) -> None:
    if not root:
        return
    for process in [*(child.pid for child in descendants(root)), root]:
        send(process, KILL)
