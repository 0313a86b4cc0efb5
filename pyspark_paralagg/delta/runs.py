"""The runs of one refresh: which go on from the states of the last refresh, and which leave states for the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.backends.kept import StateLostError
from pyspark_paralagg.delta.states import carry_over, forget, keeping_of, keeping_of_whole, remember, state_of
from pyspark_paralagg.maintenance.continuation import Continuation, continue_fixpoint, grow_fixpoint
from pyspark_paralagg.report.engine_report import report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.kept import Keeping
    from pyspark_paralagg.maintenance.program import Program
    from pyspark_paralagg.maintenance.recursion import Frames


@dataclass(frozen=True)
class _Left:
    """A run that may leave its state: the recursion, the wish to keep it, and a relation of its result."""

    program: Program
    keeping: Keeping
    result: DataFrame


class Runs:
    """The runs of a refresh; ``last`` is the id of the refresh before it, None if there is none."""

    def __init__(self, spark: SparkSession, last: str | None) -> None:
        self._spark = spark
        self._last = last
        self._loaded: dict[str, str] = {}
        self._from_state: list[bool] = []
        self._left: list[_Left] = []
        self._unread: list[Program] = []

    @property
    def are_from_state(self) -> bool:
        """Return whether all runs that go on from stored rows go on from a state, or tried to."""
        return bool(self._from_state) and all(self._from_state)

    @property
    def loaded(self) -> str:
        """Return what the runs have loaded, and why; of each recursion if they differ."""
        if len({*self._loaded.values()}) <= 1:
            return next(iter(self._loaded.values()), "")
        return "; ".join(f"{names}: {text}" for names, text in self._loaded.items())

    def whole(self, program: Program, frames: Frames) -> dict[str, DataFrame]:
        """Return the fixpoint over all rows, lazy; its run leaves a state if a later one could go on from it."""
        whole = program.whole(frames)
        keeping = keeping_of_whole(self._spark, program, whole)
        if keeping is None:
            return whole
        whole = program.whole(frames, keeping)
        self._left.append(_Left(program, keeping, next(iter(whole.values()))))
        return whole

    def continued(
        self,
        program: Program,
        stored: Frames,
        frames: Frames,
        changes: tuple[Frames, Frames],
        engine: str | None,
    ) -> dict[str, Continuation]:
        """Continue a recursion from the state that the last refresh has left, or else from its ``stored`` rows.

        ``changes`` are the rows that its sources have got and lost. Raises as ``continue_fixpoint``.
        """
        if not program.reads_some({*changes[0], *changes[1]}):
            self._unread.append(program)
            return {r.name: Continuation(r, stored[r.name], None) for r in program.relations}
        if engine != "spark":
            return continue_fixpoint(program, stored, frames, *changes, backend=engine)
        run = self._grown(program, stored, frames, changes)
        if run is None:
            keeping = keeping_of(self._spark, program, frames)
            run = continue_fixpoint(program, stored, frames, *changes, backend=engine, keeping=keeping)
        first = next(iter(run.values()))
        if first.keeping is not None and first.fixpoint is not None:
            self._left.append(_Left(program, first.keeping, first.fixpoint))
        return run

    def _grown(
        self, program: Program, stored: Frames, frames: Frames, changes: tuple[Frames, Frames]
    ) -> dict[str, Continuation] | None:
        """Continue from the state that the last refresh has left; None if it left none, or it cannot be used."""
        (inserted, deleted), names = changes, ", ".join(r.name for r in program.relations)
        try:
            state = state_of(self._spark, program, self._last, {*inserted, *deleted})
            self._from_state.append(True)
            grown = grow_fixpoint(program, stored, frames, inserted, deleted, state)
        except StateLostError as why:
            self._from_state.append(False)
            self._loaded[names] = f"all rows: {why}"
            return None
        also = ", and all base rows, since none are kept" if deleted and not state.has_base else ""
        self._loaded[names] = f"only changed rows{also}: the last refresh has kept its state"
        return grown

    def remember(self, refresh: str) -> None:
        """Record the states that the refresh with this id has left, now that its commit is written."""
        if self._last is not None:
            for program in self._unread:
                carry_over(program, self._last, refresh)
            forget(self._spark, self._last)
        for left in self._left:
            run = report(left.result)
            if run is not None:
                remember(self._spark, left.program, refresh, left.keeping, run)

    def free(self) -> None:
        """Free the states that were left and not remembered; other runs may follow."""
        for left in self._left:
            left.keeping.free()
        self._left, self._unread = [], []
