"""Remember which refresh has left which state in the executors of this application.

A state is that of one refresh: of the rows that it wrote, over the sources that it consumed. So the next refresh goes
on from it only if that refresh is the last one in the table's log, and no other writer came after it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from pyspark_paralagg.backends.kept import Keeping, KeptState
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_paralagg.maintenance.program import Program

MAX_STATES = 16
"""So many tables have a state; Spark evicts states before, if memory is needed."""

_states: OrderedDict[str, KeptState] = OrderedDict()
"""By the id of the refresh's record."""


def state_of(spark: SparkSession, refresh: str) -> KeptState | None:
    """Return the state that the refresh with this id has left, for one use; None if it is not there any more."""
    state = _states.pop(refresh, None)
    if state is None or not state.is_there(spark):
        return None
    if not conf.read(spark, conf.KEEP_STATE):
        state.free(spark)
        return None
    return state


def keeping_of(spark: SparkSession, program: Program, backend: str | None) -> Keeping | None:
    """Return the wish to keep the state of a run; None if no later refresh could go on from it."""
    return Keeping(spark) if backend == "spark" and program.grows and conf.read(spark, conf.KEEP_STATE) else None


def remember(spark: SparkSession, refresh: str, keeping: Keeping) -> None:
    """Record the state that the run of ``refresh`` has left, if it has left one."""
    state = keeping.hand_over()
    if state is not None:
        _states[refresh] = state
    while len(_states) > MAX_STATES:
        _states.popitem(last=False)[1].free(spark)
