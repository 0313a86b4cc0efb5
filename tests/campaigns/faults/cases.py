"""The cases: every fault that an engine can meet, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

MPI = ("rank", "heartbeat", "supervisor", "proxy", "mpiexec")
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
SPARK = {
    "kill": ("executor",),
    "stop": ("executor",),
    "blink": ("executor", "jvm", "driver"),
    "socket": ("executor",),
    "cancel": ("jobs", "SIGINT"),
    "lost driver": ("jvm", "driver"),
}
FAULTS: dict[str, dict[str, tuple[str, ...]]] = {
    "command, local": {
        "blink": ("command",),
        "disk": ("temporary", "out"),
        "cancel": SIGNALS,
        "lost driver": ("command",),
    },
    "command, mpi": {
        "kill": MPI,
        "stop": MPI,
        "blink": (*MPI, "command"),
        "disk": ("temporary", "out"),
        "cancel": SIGNALS,
        "lost driver": ("command",),
    },
    "Spark": SPARK,
    "DataFrames": {**SPARK, "stop": (), "socket": ()},
    "offload, local": {
        **SPARK,
        "kill": (*MPI, "executor"),
        "stop": (*MPI, "executor"),
        "blink": (*MPI, "executor", "jvm"),
        "disk": ("staging",),
    },
    "offload, spark": {
        **SPARK,
        "kill": (*MPI, "guard", "executor"),
        "stop": (*MPI, "guard", "executor"),
        "blink": (*MPI, "guard", "executor"),
        "socket": ("proxy", "heartbeat", "executor"),
    },
}
"""Engine -> fault -> targets. A stopped driver is a blink: nobody is left to notice that it never goes on."""
WEIGHTS = {
    "command, local": 2,
    "command, mpi": 4,
    "Spark": 2,
    "DataFrames": 1,
    "offload, local": 2,
    "offload, spark": 2,
}
_BLINK_SECONDS = (0.2, 3.0)


@dataclass(frozen=True)
class Case:
    """One run. ``moment`` is a share of the time that the run takes undisturbed; ``seconds`` are those of a blink."""

    number: int
    engine: str
    fault: str
    target: str
    moment: float
    seconds: float
    ranks: int

    def __str__(self) -> str:
        """Say it in a line."""
        blink = f" for {self.seconds:.1f} s" if self.fault == "blink" else ""
        return (
            f"{self.number}: {self.engine} ({self.ranks} ranks): {self.fault} {self.target}{blink} at {self.moment:.0%}"
        )


def draw(random: random.Random, count: int, engines: Iterable[str] = FAULTS) -> list[Case]:
    """Return so many cases."""
    chosen = [engine for engine in FAULTS if engine in set(engines)]
    cases = []
    for engine in random.choices(chosen, [WEIGHTS[engine] for engine in chosen], k=count):
        fault, target = random.choice([(fault, t) for fault, targets in FAULTS[engine].items() for t in targets])
        moment, seconds = random.uniform(0, 0.9), random.uniform(*_BLINK_SECONDS)
        ranks = random.choice((2, 2, 3, 4)) if engine == "command, mpi" else 1 if engine == "command, local" else 2
        cases.append(Case(len(cases), engine, fault, target, moment, seconds, ranks))
    return cases
