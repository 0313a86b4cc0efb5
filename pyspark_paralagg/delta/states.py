"""Remember which refresh has left which state in the executors of this application.

A state is that of one refresh: of the rows that it wrote, over the sources that it consumed. So the next refresh goes
on from it only if that refresh is the last one in the table's log, and no other writer came after it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from pyspark_paralagg.backends.kept import Keeping, KeptState, StateLostError
from pyspark_paralagg.report.engine_report import SPARK, describe
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_paralagg.maintenance.program import Program
    from pyspark_paralagg.maintenance.recursion import Frames
    from pyspark_paralagg.report.run_report import RunReport

MAX_STATES = 32
"""So many recursions of tables have a state; Spark evicts states before, if memory is needed."""

_states: OrderedDict[tuple[str, tuple[str, ...]], KeptState] = OrderedDict()
"""By the id of the refresh's record, and the relations of the recursion."""


def state_of(spark: SparkSession, program: Program, refresh: str | None, changed: set[str]) -> KeptState:
    """Return the state of ``program`` that the ``refresh`` with this id has left, for one use.

    The next run is over the ``changed`` sources. Raises ``StateLostError`` if there is none, or if the run cannot go on
    from it.
    """
    state = None if refresh is None else _states.pop(_key(refresh, program), None)
    why = _obstacle(spark, program) or _obstacle_for(program, changed)
    if why is None and (state is None or not state.is_there(spark)):
        why = "executors have no state of the last refresh"
    if why is None and state is not None:
        return state
    if state is not None:
        state.free(spark)
    raise StateLostError(why)


def forget(spark: SparkSession, refresh: str) -> None:
    """Free the states that the ``refresh`` with this id has left, if any: a newer one has replaced them."""
    for key in [key for key in _states if key[0] == refresh]:
        _states.pop(key).free(spark)


def keeping_of(spark: SparkSession, program: Program, frames: Frames) -> Keeping | None:
    """Return the wish to keep the state of a run over ``frames``; None if no later refresh could go on from it."""
    if program.adds_only:
        return keeping_of_whole(spark, program, program.whole(frames))
    return Keeping(spark) if _obstacle(spark, program) is None else None


def has_state(spark: SparkSession, program: Program, refresh: str, changed: set[str]) -> bool:
    """Return whether the next refresh can go on from a state that the ``refresh`` with this id has left."""
    state = _states.get(_key(refresh, program))
    why = _obstacle(spark, program) or _obstacle_for(program, changed)
    return state is not None and why is None and state.is_there(spark)


def keeping_of_whole(spark: SparkSession, program: Program, whole: Frames) -> Keeping | None:
    """Return the wish to keep the state of a full run; ``whole`` are its relations, compiled without the wish.

    None if a later refresh could not go on from it, or if the engine evaluates ``whole`` in a form that has no state.
    """
    described = describe(next(iter(whole.values())))
    if described is None or described["backend"] != SPARK or program.obstacle is not None:
        return None
    strata = described["plan"]["strata"]
    has_state = len(strata) == 1 and strata[0]["keeps_state"]
    has_checkpoints = conf.read(spark, conf.CHECKPOINT_DIR) is not None  # a kept run has none
    if not has_state or has_checkpoints or _obstacle(spark, program) is not None:
        return None
    return Keeping(spark, base="whole" if program.adds_only else "new")


def _key(refresh: str, program: Program) -> tuple[str, tuple[str, ...]]:
    return refresh, tuple(r.name for r in program.relations)


def _obstacle(spark: SparkSession, program: Program) -> str | None:
    if not conf.read(spark, conf.KEEP_STATE):
        return f"{conf.KEEP_STATE.name} is false"
    if program.adds_only and not program.adds_exactly:
        return "sums of fractions, and to a tolerance, go on by differences"
    if program.adds_only and not program.has_rowwise_base:
        return "the base joins or aggregates a source"
    if program.has_witnesses:
        return "witnesses are derived again from all rows"
    return None if program.grows else "the step joins or aggregates a source before the recursion"


def _obstacle_for(program: Program, changed: set[str]) -> str | None:
    return "rows changed on the right side of an anti join" if program.rejects(changed) else None


def carry_over(program: Program, before: str, refresh: str) -> None:
    """Record that the state which the refresh ``before`` has left is that of ``refresh``, too: nothing has changed."""
    state = _states.pop(_key(before, program), None)
    if state is not None:
        _states[_key(refresh, program)] = state


def remember(spark: SparkSession, program: Program, refresh: str, keeping: Keeping, run: RunReport) -> None:
    """Record the state that a ``run`` of ``program`` in ``refresh`` has left, if it has left one."""
    state = keeping.hand_over(run.totals)
    if state is not None:
        _states[_key(refresh, program)] = state
    while len(_states) > MAX_STATES:
        _states.popitem(last=False)[1].free(spark)
