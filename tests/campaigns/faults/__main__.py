"""``python -m campaigns.faults [--count N] [--seed N] [--jobs N]``; exit code 1: a case has failed.

Each job is a process in namespaces of its own, which runs its share of the cases and prints a line of JSON for each.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from functools import partial
from typing import IO, TYPE_CHECKING

from campaigns.faults import isolation
from campaigns.faults.cases import FAULTS, Case, draw
from campaigns.faults.run import Campaign, Result
from campaigns.faults.table import table
from campaigns.faults.workload import Outcome
from jvm_options import use_quick_jvms

from mpi_backend.launch.process_tree import end_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> int:
    """Return the exit code."""
    options = _parser().parse_args()
    use_quick_jvms()
    if options.part is not None:
        isolation.mount()
        _run_part(options)
        return 0
    reason = isolation.reason_against()
    if reason is not None:
        print(f"no campaign here: {reason}", file=sys.stderr)
        return 2
    options.seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()
    results = []
    for result in _results(options):
        results.append(result)
        _show(result)
    failed = sum(bool(result.problems) for result in results)
    print(table(results))
    print(f"{len(results)} runs, {failed} failures, {time.monotonic() - began:.0f} s, seed {options.seed}")
    is_complete = bool(results) if options.seconds else len(results) == len(_cases(options))
    return 0 if is_complete and not failed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m campaigns.faults", description="harm runs, and judge them")
    parser.add_argument("--count", type=int, default=30, help="of runs")
    parser.add_argument("--seed", type=int, help="of what is drawn; a new one unless said, and printed")
    parser.add_argument("--seconds", type=float, help="begin no run after so many; all unless said")
    parser.add_argument("--jobs", type=int, default=1, help="at the same time")
    parser.add_argument("--engine", action="append", choices=list(FAULTS), help="only these")
    parser.add_argument("--fault", action="append", help="only these")
    parser.add_argument("--target", action="append", help="only these")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    return parser


def _cases(options: argparse.Namespace) -> list[Case]:
    """Draw all cases of a seed, and keep those that were asked for."""
    drawn = draw(random.Random(options.seed), options.count, options.engine or FAULTS)
    kept = [c for c in drawn if not options.fault or c.fault in options.fault]
    return [c for c in kept if not options.target or c.target in options.target]


def _results(options: argparse.Namespace) -> Iterator[Result]:
    """Start the jobs, and yield what they print."""
    lines: queue.Queue[str | None] = queue.Queue()
    words = isolation.command("campaigns.faults", [*sys.argv[1:], "--seed", str(options.seed)])
    env = {**os.environ, "PYTHONPATH": isolation.PYTHONPATH}
    parts = [
        subprocess.Popen(  # noqa: S603 - ours
            [*words, "--part", str(part)],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=partial(end_with_parent, signal.SIGKILL),  # noqa: PLW1509 - unshare ignores SIGTERM
        )
        for part in range(options.jobs)
    ]
    for part in parts:
        threading.Thread(target=_read, args=(part.stdout, lines), daemon=True).start()
    running = len(parts)
    try:
        while running:
            line = lines.get()
            if line is None:
                running -= 1
                continue
            told = json.loads(line)
            case, outcome = Case(**told.pop("case")), Outcome(*told.pop("outcome"))
            yield Result(case, outcome, **told)
    finally:
        for part in parts:
            part.kill()  # and with it all that it started: it is process 1 of its namespace
            part.wait()


def _read(stdout: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in stdout:
        lines.put(line)
    lines.put(None)


def _run_part(options: argparse.Namespace) -> None:
    """Run every n-th case."""
    for number in (signal.SIGINT, signal.SIGHUP):  # ignored where a shell has started this in the background
        signal.signal(number, signal.SIG_DFL)
    campaign = Campaign(random.Random(f"{options.seed}, {options.part}"))
    until = time.monotonic() + (options.seconds or float("inf"))
    for result in campaign.run(_cases(options)[options.part :: options.jobs]):
        print(json.dumps(asdict(result)), flush=True)
        if time.monotonic() > until:
            break
    campaign.close()


def _show(result: Result) -> None:
    end = result.outcome.kind if result.is_hit else f"{result.outcome.kind}, too late"
    print(f"{result.case}: {end} after {result.seconds:.1f} s", flush=True)
    text = result.outcome.text.splitlines()
    if text:
        print(f"    {text[0][:300]}", flush=True)
    for problem in result.problems:
        print(f"    FAILED {problem}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
