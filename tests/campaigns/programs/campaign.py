"""Runs programs of seeds on an engine, counts what comes of them, and shrinks what fails."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from campaigns.programs.draw import case_of
from campaigns.programs.engines import NoMeaning, Refused, compared, difference, meaning, on_ranks, staged
from campaigns.programs.engines import ranks as on_three_ranks
from campaigns.programs.shrink import shrunk

from pyspark_paralagg.errors import UnsupportedError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from campaigns.programs.engines import Rows
    from datalog.programs_random import Case


FEW = 40
"""Calls of ``mpiexec`` to shrink a failure."""


TELL_SECONDS = 60


@dataclass
class Tally:
    """What came of the programs of a campaign."""

    agreed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    meaningless: int = 0
    failures: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    told: float = field(default_factory=time.monotonic)

    def tick(self) -> None:
        """Print now and then how far it is."""
        if time.monotonic() - self.told > TELL_SECONDS:
            self.told = time.monotonic()
            sys.stdout.write(f"{self}\n")
            sys.stdout.flush()

    def fail(self, failure: str) -> None:
        """Keep and print a failure."""
        self.failures.append(failure)
        sys.stdout.write(f"\n{failure}\n")
        sys.stdout.flush()

    @property
    def programs(self) -> int:
        return self.agreed + sum(self.refused.values()) + self.meaningless + len(self.failures)

    def __str__(self) -> str:
        told = f"{self.programs} programs: {self.agreed} agree, {sum(self.refused.values())} refused with a reason, "
        return told + f"{self.meaningless} overflow or do not end, {len(self.failures)} FAILED"


def run(
    seeds: Iterable[int], engine: Callable[[Case], list[Rows]], *, until: float = float("inf"), shrinks: bool = True
) -> Tally:
    """Each program by itself; no new one begins after ``until`` (of ``time.monotonic``)."""
    tally = Tally()
    for seed in seeds:
        if time.monotonic() > until:
            break
        tally.tick()
        case = case_of(seed)
        try:
            found = difference(case, engine)
        except NoMeaning:
            tally.meaningless += 1
        except Refused as problem:
            tally.refused[reason(str(problem))] += 1
        else:
            if found is None:
                tally.agreed += 1
            else:
                smallest = shrunk(case, lambda c: _kind(c, engine) == kind(found)) if shrinks else case  # noqa: B023 - called at once
                tally.fail(f"seed {seed}: {found}\n{smallest!r}")
    return tally


def run_by_ranks(
    seeds: Iterable[int],
    ranks: int,
    until: float = float("inf"),
    batch: int = 5,
    options_of: Sequence[Sequence[object]] = ((),),
) -> Tally:
    """Programs on real ranks, so many by one ``mpiexec``; the seed of the first one selects the options."""
    tally = Tally()
    left = list(seeds)
    while left and time.monotonic() < until:
        tally.tick()
        seeds, left = left[:batch], left[batch:]
        options = options_of[seeds[0] // batch % len(options_of)]
        ready = []
        for seed in seeds:
            case = case_of(seed)
            try:
                ready.append((seed, case, meaning(case), staged(case)))
            except NoMeaning:
                tally.meaningless += 1
            except (VerificationError, UnsupportedError) as problem:
                tally.refused[reason(f"{problem.code} {problem.message}")] += 1
        results = on_ranks([s for *_, s in ready], ranks, options, tally.seen)
        for (seed, case, expected, _), found in zip(ready, results, strict=True):
            problem = str(found) if isinstance(found, AssertionError) else compared([found], expected)
            if problem is None:
                tally.agreed += 1
            else:
                smallest = shrunk(case, partial(_fails_on_ranks, options), FEW)
                tally.fail(f"seed {seed} {' '.join(map(str, options))}: {problem}\n{smallest!r}")
    return tally


def _fails_on_ranks(options: Sequence[object], case: Case) -> bool:
    try:
        return difference(case, partial(on_three_ranks, options=options)) is not None
    except Exception:  # noqa: BLE001 - what is no program is no failure of one
        return False


def reason(problem: str) -> str:
    """A refusal without its names and numbers."""
    return re.sub(r"`[^`]*`|\d+", "_", problem)[:100]


def kind(problem: str) -> str:
    """What a failure has in common with that of a smaller program."""
    return re.sub(r"r\d+|\d+", "_", problem.partition("(run")[0].partition("\n")[0])[:40]


def _kind(case: Case, engine: Callable[[Case], list[Rows]]) -> str | None:
    try:
        found = difference(case, engine)
    except Exception:  # noqa: BLE001 - what is no program is no failure of one
        return None
    return found and kind(found)
