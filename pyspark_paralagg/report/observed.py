"""Keep the reports that come back beside the rows of a result: the executor in Python workers has no other way.

The first row of such a result has the report in a column of its own. A Spark ``Observation`` carries it to this
process, and the row and the column are removed. The observation's name in a DataFrame's plan finds the report, also
after ``filter``, ``join`` and the like.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.connect.frames import plan_of
from pyspark_paralagg.connect.messages import metrics_in
from pyspark_paralagg.report.recent import Recent
from pyspark_paralagg.report.run_report import RunReport
from pyspark_paralagg.session.running import check_running, is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

_PREFIX = "paralagg python-"
_NUMBERS = count(1)
_VALUE = "report"


@dataclass(frozen=True)
class Observed:
    """What is known of a result: ``described`` as ``engine_report.describe`` returns it, and its observation."""

    described: dict[str, Any]
    observation: Any

    def report(self) -> RunReport | None:
        """Return the report of the last run (in a classic session of the first); None before."""
        text = _text(self.observation)
        if text is None:
            return None
        data = {**json.loads(text), "backend": self.described["backend"], "reason": self.described["reason"]}
        return RunReport.from_json(json.dumps(data), plan_seconds=self.described["plan_seconds"])


_BY_NAME: Recent[str, Observed] = Recent()


def observed(df: DataFrame, column: str, described: dict[str, Any]) -> DataFrame:
    """Return ``df`` without the row and the column of the report, which ``find`` then finds."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that everyone gives it; pyspark is optional

    name = f"{_PREFIX}{next(_NUMBERS)}"
    report = F.col(f"`{column}`")
    with_metrics, observation = (_observed_over_connect if is_connect(df) else _observed_here)(df, name, F.max(report))
    _BY_NAME[name] = Observed(described, observation)
    return with_metrics.where(report.isNull()).drop(column)


def _observed_here(df: DataFrame, name: str, value: Column) -> tuple[DataFrame, Any]:
    from pyspark.sql import Observation  # noqa: PLC0415 - pyspark is optional

    observation = Observation(name)
    return df.observe(observation, value.alias(_VALUE)), observation


def _observed_over_connect(df: Any, name: str, value: Any) -> tuple[DataFrame, Any]:  # noqa: ANN401 - Connect's own classes
    """Do what ``observe`` does, which first asks the server whether ``df`` is a stream."""
    from pyspark.sql.connect.observation import Observation  # noqa: PLC0415 - needs grpc
    from pyspark.sql.connect.plan import CollectMetrics  # noqa: PLC0415 - likewise

    class Joinable(CollectMetrics):
        """Metrics that both sides of a join may have: the clients of Spark 4.0 and 4.1 refuse equal keys of them."""

        @property
        def observations(self) -> dict[str, Any]:
            return {_Apart(name): found for name, found in super().observations.items()}

    observation = Observation(name)
    observation._result = {}  # noqa: SLF001 - as `observe` marks it
    return type(df)(Joinable(df._plan, observation, [value.alias(_VALUE)]), df.sparkSession), observation  # noqa: SLF001 - as above


class _Apart(str):
    """A name that plain strings equal, but no other of its kind.

    >>> both = dict(**{_Apart("a"): 1}, **{_Apart("a"): 2})
    >>> "a" in both, len(both)
    (True, 2)
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is str and str.__eq__(self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other


def find(df: DataFrame) -> Observed | None:
    """Return the outermost result of this process that the plan of ``df`` reads, or None."""
    return next((_BY_NAME[name] for name in _names(df) if name in _BY_NAME), None)


def _names(df: DataFrame) -> Iterator[str]:
    """Yield the names of the observations in a plan."""
    if not _BY_NAME:
        return
    if is_connect(df):
        yield from metrics_in(plan_of(df))
        return
    check_running(df.sparkSession)
    plans = [df._jdf.queryExecution().analyzed()]  # noqa: SLF001 - pyspark has no public way to a plan
    while plans:
        plan = plans.pop(0)
        if plan.getClass().getSimpleName() == "CollectMetrics":
            yield plan.name()
        children = plan.children()
        plans += [children.apply(n) for n in range(children.size())]


def _text(observation: Any) -> str | None:  # noqa: ANN401 - pyspark has two classes
    """Return the observed text, without waiting for a run."""
    if hasattr(observation, "_result"):
        text: str | None = (observation._result or {}).get(_VALUE)  # noqa: SLF001 - `get` raises the error of a run
        return text
    return observation.get[_VALUE] if observation._jo.future().isCompleted() else None  # noqa: SLF001 - `get` waits
