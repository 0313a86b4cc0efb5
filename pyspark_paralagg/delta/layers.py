"""The recursions behind one maintained relation: those of lower strata that it needs, and its own as the last one.

    edge ──► layer 1: reach ──────► layer 2: far, which reads edge and reach
                      │ companion table              │ target

The rows of every relation but the maintained one are in a *companion* table. What changes in a layer is a change of a
source for later ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from pyspark_paralagg.maintenance.program import Program
    from pyspark_paralagg.maintenance.recursion import Frames
    from pyspark_paralagg.program.program import Relation


def source_of(relation: str) -> str:
    """Return the name of the source by which later layers read a ``relation``."""
    return f"relation {relation}"


class Layers:
    """The ``programs`` of the maintained relation ``target``.

    If there are several relations, ``whole`` returns the target as one lazy query over the sources.
    ``fingerprint`` differs if a program differs. ``obstacle`` is the reason why no refresh can be incremental, and
    ``unstable`` why the same rows may give another result; None if there is none.
    """

    def __init__(
        self, programs: Sequence[Program], target: str, whole: Callable[[Frames], DataFrame] | None = None
    ) -> None:
        self.programs = tuple(programs)
        self.target = target
        self._whole = whole
        self.obstacle = next((p.obstacle for p in programs if p.obstacle is not None), None)
        self.unstable = next((p.unstable for p in programs if p.unstable is not None), None)
        self.exactness = next((p.exactness for p in programs if p.exactness), "")
        self.fingerprint = " ".join(p.fingerprint for p in programs)

    @property
    def relations(self) -> dict[str, Relation]:
        """Return all relations by name."""
        return {r.name: r for program in self.programs for r in program.relations}

    @property
    def columns(self) -> dict[str, str]:
        """Return the type of each column of the target."""
        return {c.name: c.type for c in self.relations[self.target].columns}

    @property
    def single(self) -> Program | None:
        """Return the program of the only relation; None if there are several."""
        return self.programs[0] if len(self.relations) == 1 else None

    def whole(self, frames: Frames) -> DataFrame:
        """Return the target over these rows of the sources; lazy."""
        if self.single is None and self._whole is not None:
            return self._whole(frames)
        return self.programs[-1].whole(frames)[self.target]

    def obstacle_for(self, changed: set[str]) -> str | None:
        """Return why changed rows of the sources ``changed`` cannot be maintained; None if they can."""
        reasons = (program.obstacle_for(read) for program, read in self.reading(changed))
        return next((reason for reason in reasons if reason is not None), None)

    def reading(self, changed: set[str]) -> Iterator[tuple[Program, set[str]]]:
        """Yield the programs that read the sources ``changed``, with these and the lower relations that may change."""
        changed = set(changed)
        for program in self.programs:
            if program.reads_some(changed):
                yield program, set(changed)
                changed |= {source_of(r.name) for r in program.relations}

    def rejects(self, changed: set[str]) -> bool:
        """Return whether a program reads one of the sources ``changed`` on the right side of an anti join."""
        return any(program.rejects(changed) for program in self.programs)
