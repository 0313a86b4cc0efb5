"""Keep the state of the Spark engine in executors from one run of a program to the next (`KeptStates.scala`).

A run leaves its loaded indexes, targets and rows there. The next one of the same step takes them, reads only the rows
that its sources have got since, and runs the Plan of the first one: placement must not depend on the size of a change.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pyspark_paralagg.plan.plan import Probe
from pyspark_paralagg.session.attach import bridge
from pyspark_paralagg.session.condition import condition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.compile.compile_step import CompiledStep
    from pyspark_paralagg.plan.plan import Stratum

    Step = dict[str, Any]

BaseRows: TypeAlias = Literal["whole", "all", "changes", "new"]
_LOST, _MANY_FALL = "PARALAGG_KEPT_STATE", "PARALAGG_MANY_FALL"


class StateLostError(Exception):
    """The reason why a run cannot go on from a kept state; not an error of the user."""


@dataclass(frozen=True)
class KeptState:
    """A state in the executors of ``application``, by its ``name``, and the step and Plan of the run that left it.

    ``rows`` is the number of rows of each relation. ``has_base``: the state has all base rows, too.
    """

    application: str
    name: int
    step: Step
    compiled: CompiledStep
    rows: Mapping[str, int] = field(default_factory=dict)
    has_base: bool = False

    def is_there(self, session: SparkSession) -> bool:
        """Return whether executors have the state."""
        if self.application != session.sparkContext.applicationId:
            return False
        return bool(bridge(session).hasKept(session._jsparkSession, self.name))  # noqa: SLF001 - no public way

    def free(self, session: SparkSession) -> None:
        """Free the state; without effect if it is not there."""
        if self.application == session.sparkContext.applicationId:
            bridge(session).freeKept(session._jsparkSession, self.name)  # noqa: SLF001 - likewise


@dataclass(frozen=True)
class Falls:
    """What a run with deleted rows needs: ``removed`` is the step over the rows that the sources have lost.

    The initial rows of its relations are the base rows that those sources have lost. A derivation supports a row of the
    relation at ``n`` if both have the same value in the dependent column at ``by[n]``, fractions within the relative
    ``tolerance[n]``; None: if both have the same key. ``by_parents``: the last derivation that changed a row is support
    enough. No more than ``most`` rows may fall. The result has a last column ``flag``: true for rows that leave, false
    for new and changed ones.
    """

    removed: Callable[[Mapping[str, DataFrame]], Mapping[str, DataFrame]]
    by: Sequence[int | None]
    tolerance: Sequence[float]
    by_parents: bool
    most: int
    flag: str

    def to_json(self) -> dict[str, Any]:
        """Return what the shim reads (``FallsSpec``)."""
        by = [-1 if at is None else at for at in self.by]
        limits = {"tolerance": list(map(str, self.tolerance)), "most": self.most}
        return {"by": by, "by_parents": self.by_parents, "flag": self.flag, **limits}


class Keeping:
    """The wish that a run keeps its state, and goes on from that of an earlier run, if one is given.

    ``base`` says what base rows the run gets: ``"whole"``, all of them, which it keeps; ``"all"`` of them, without
    keeping them; ``"changes"`` of those that the state before it has kept; or ``"new"`` ones alone.
    """

    def __init__(
        self,
        session: SparkSession,
        before: KeptState | None = None,
        falls: Falls | None = None,
        base: BaseRows = "new",
    ) -> None:
        self._session = session
        self._before = before
        self._base = base
        self.falls = falls
        self._name: int = bridge(session).keptName(session._jsparkSession)  # noqa: SLF001 - likewise
        self._left: KeptState | None = None

    def compiled(self, step: Step, compile_step: Callable[[], CompiledStep]) -> CompiledStep:
        """Return the Plan of the run; raise ``StateLostError`` if the state before it is of another step."""
        if self._before is None:
            compiled = compile_step()
        else:
            check_same(self._before.step, step)
            compiled = self._before.compiled
            if self.falls is not None and _reads_twice(compiled.plan.strata[0]):
                message = "a rule reads a source twice, and rows were deleted"
                raise StateLostError(message)
        if len(compiled.plan.strata) == 1:
            has_base = self._base in {"whole", "changes"}
            application = self._session.sparkContext.applicationId
            self._left = KeptState(application, self._name, step, compiled, has_base=has_base)
        return compiled

    def kept(self, plan: dict[str, Any], first_removed: int | None) -> dict[str, Any]:
        """Return the Plan's JSON with names of states; removed rows are in sources from ``first_removed`` on."""
        take = None if self._before is None else self._before.name
        kept: dict[str, Any] = {"take": take, "put": self._name, "base": self._base}
        appended = [{**stratum, "appends_strings": take is not None} for stratum in plan["strata"]]
        plan = {**plan, "kept": kept, "narrower": [], "strata": appended}
        if first_removed is None or self._before is None or self.falls is None:
            return plan
        kept["falls"] = self.falls.to_json()
        [stratum], sources = plan["strata"], {i.id: i.source for i in self._before.compiled.plan.inputs}
        next_input = max(sources) + 1
        indexes = [{**index, "removed": next_input + n} for n, index in enumerate(stratum["static_indexes"])]
        by_id = {entry["id"]: entry for entry in plan["inputs"]}
        removed = [
            {**by_id[i["input"]], "id": i["removed"], "source": first_removed + sources[i["input"]]} for i in indexes
        ]
        strata = [{**stratum, "static_indexes": indexes}]
        return {**plan, "inputs": [*plan["inputs"], *removed], "strata": strata}

    def hand_over(self, rows: Mapping[str, int]) -> KeptState | None:
        """Return the state that the run has left, and that ``free`` then leaves; None if there is none.

        ``rows`` is the number of rows of each relation.
        """
        left, self._left = self._left, None
        return replace(left, rows=rows) if left is not None and left.is_there(self._session) else None

    def new_keys(self, relation: str, removed: int, rows: Mapping[str, int]) -> int | None:
        """Return how many keys a run adds to a relation that loses ``removed`` ones; None: not known.

        ``rows`` is the number of rows of each relation at its end.
        """
        before = {} if self._before is None else self._before.rows
        return rows[relation] - before[relation] + removed if relation in before and relation in rows else None

    def free(self) -> None:
        """Free what is left of the state before the run, and of its own one."""
        for state in (self._before, self._left):
            if state is not None:
                state.free(self._session)


def is_lost(problem: BaseException) -> bool:
    """Return whether Spark's error says that a kept state cannot be used."""
    return condition_of(problem) == _LOST


def has_too_many_fallen(problem: BaseException) -> bool:
    """Return whether Spark's error says that more rows fall than may."""
    return condition_of(problem) == _MANY_FALL


def _reads_twice(stratum: Stratum) -> bool:
    """Return whether a rule reads a static index twice: its deleted rows then join each other's."""
    probes = [[s.index for s in rule.steps if isinstance(s, Probe)] for rule in stratum.rules]
    return any(len(set(indexes)) < len(indexes) for indexes in probes)


def check_same(step: Step, other: Step) -> None:
    """Raise ``StateLostError`` if the two steps differ in more than the sizes of their sources."""
    if _without_sizes(step) != _without_sizes(other):
        message = "the step is analysed in another way"
        raise StateLostError(message)


def _without_sizes(step: Step) -> Step:
    return {**step, "sources": [{**source, "size": None} for source in step["sources"]]}
