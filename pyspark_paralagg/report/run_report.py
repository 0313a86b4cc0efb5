"""What a run did: who ran it and why, how often, how long, how much.

Both executors fill the same :class:`RunReport`. The Spark engine keeps its report in the JVM beside the fixpoint; the
DataFrame executor keeps it here, found again through the checkpoint that its result reads, so it survives
``filter``, ``join`` and the like in a classic session. Over Connect only the returned DataFrame itself knows its
report.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem, UsageError
from pyspark_paralagg.session.running import check_running, is_connect

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from pyspark.sql import DataFrame

_MEMORY = 256
_COLUMNS = ("iteration", "relation", "delta", "total", "seconds", "bytes", "balance")


@dataclass(frozen=True)
class RunReport:
    """The report of one run of a fixpoint.

    ``iterations`` counts applications of the step, the last one, which found nothing new, included. ``tuples`` are
    the rows of all relations at the end. ``seconds`` has ``plan``, ``load``, ``loop`` and ``store``. ``rounds`` has
    one entry for each iteration and relation: rows that changed (``delta``), rows there are (``total``), ``seconds``,
    ``bytes`` that were exchanged (relations of one iteration share an exchange: its bytes are in the first one's
    entry), and the ``balance``: the part of the delta on the task or rank that has most of it, by the average of all
    (1.0 is even; as many as there are tasks if one has everything). Where nobody counts, these two are None, and the
    balance is where nothing changed. Runs by bitmaps, or value by value (of a key that all rules carry), do not tell of
    single iterations: ``rounds`` is empty, and ``iterations`` are those of the block or the value with most of them.

    ``ranks`` has one entry for each MPI rank: ``rank``, ``host``, ``bytes`` that its relations and indexes took,
    ``seconds``, ``memory`` (the most that the process had); ``seconds`` then has ``export``, the time that writing the
    inputs took, and ``start`` as well.

    In a notebook a report shows itself as a page; ``to_pandas()`` and ``plot()`` are for a closer look.
    """

    backend: str
    reason: str
    iterations: int
    tuples: int
    seconds: dict[str, float]
    rounds: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    ranks: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @property
    def balance(self) -> float | None:
        """Of the whole run: rows that the heaviest tasks changed, by the average of all; None where nobody counts."""
        counted = [(r["delta"], r["balance"]) for r in self.rounds if r.get("balance") is not None]
        changed = sum(delta for delta, _ in counted)
        return sum(delta * balance for delta, balance in counted) / changed if changed else None

    def to_pandas(self) -> pd.DataFrame:
        """``rounds`` as pandas: iteration, relation, delta, total, seconds, bytes, balance."""
        import pandas as pd  # noqa: PLC0415 - slow to load, and few ask

        return pd.DataFrame([{c: row.get(c) for c in _COLUMNS} for row in self.rounds], columns=list(_COLUMNS))

    def plot(self) -> Figure:
        """A picture by matplotlib: rows changed and rows there are after each iteration, and where the time went.

        The figure is the caller's: ``report.plot().savefig("run.png")``; a notebook shows it. Raises
        ``EnvironmentProblem`` ``PARALAGG_NO_MATPLOTLIB`` without matplotlib, and ``UsageError``
        ``PARALAGG_NO_ITERATIONS`` where ``rounds`` is empty.
        """
        if not self.rounds:
            message = "this run did not count its iterations one by one, so there is nothing to draw"
            hint = "runs by bitmaps, or value by value, do not; the report's own text has the times"
            raise UsageError("PARALAGG_NO_ITERATIONS", message, place="plot", hint=hint)
        try:
            from pyspark_paralagg.report.plots import plot_report  # noqa: PLC0415 - optional, and slow to load
        except ModuleNotFoundError as problem:
            if problem.name is None or problem.name.split(".")[0] != "matplotlib":
                raise
            message = "a report is drawn by matplotlib, which is not installed"
            hint = "pip install 'pyspark-paralagg[plots]'"
            raise EnvironmentProblem("PARALAGG_NO_MATPLOTLIB", message, value="matplotlib", hint=hint) from problem
        return plot_report(self)

    def _repr_html_(self) -> str:
        """What a notebook shows; self-contained."""
        from pyspark_paralagg.report.report_page import report_fragment  # noqa: PLC0415 - notebooks only

        return report_fragment(self)

    def to_json(self) -> str:
        """The report as one JSON object; ``from_json`` reads it."""
        return json.dumps(
            {
                "backend": self.backend,
                "reason": self.reason,
                "iterations": self.iterations,
                "tuples": self.tuples,
                "seconds": self.seconds,
                "per_iteration": list(self.rounds),
                "ranks": list(self.ranks),
            }
        )

    @classmethod
    def from_json(cls, text: str, plan_seconds: float | None = None) -> RunReport:
        """Reads what ``to_json`` or the shim wrote; the shim does not know how long Python planned."""
        data = json.loads(text)
        seconds = {"plan": plan_seconds or 0.0, "load": 0.0, "loop": 0.0, "store": 0.0}
        seconds.update({k: float(v) for k, v in data.get("seconds", {}).items()})
        return cls(
            backend=data["backend"],
            reason=data.get("reason", ""),
            iterations=data["iterations"],
            tuples=data["tuples"],
            seconds=seconds,
            rounds=tuple(data.get("per_iteration", ())),
            ranks=tuple(data.get("ranks", ())),
        )

    def __repr__(self) -> str:
        """Three lines for a person."""
        spent = ", ".join(f"{name} {value:.3f} s" for name, value in self.seconds.items())
        return (
            f"{self.backend}: {self.iterations:,} iterations, {self.tuples:,} rows\n"
            f"  time: {spent}\n"
            f"{self._shown_ranks()}"
            f"  why {self.backend}: {self.reason}"
        )

    def _shown_ranks(self) -> str:
        if not self.ranks:
            return ""
        hosts = len({r.get("host") for r in self.ranks})
        sent = sum(r.get("bytes") or 0 for r in self.rounds)
        where = "one host" if hosts == 1 else f"{hosts} hosts"
        return f"  ranks: {len(self.ranks)} on {where}, {sent:,} bytes sent\n"


@dataclass
class Record:
    """What is kept beside a result: the report (None before the run) and the parts of ``explain``."""

    report: RunReport | None = None
    program: str = ""
    plan: str = ""
    plan_seconds: float = 0.0


_BY_CHECKPOINT: OrderedDict[tuple[str, int], Record] = OrderedDict()
_ATTRIBUTE = "_paralagg_record"


def keep(df: DataFrame, record: Record) -> None:
    """Remembers ``record`` for ``df`` and for what is made of it."""
    setattr(df, _ATTRIBUTE, record)
    for checkpoint in _checkpoints(df):
        _BY_CHECKPOINT[checkpoint] = record
        while len(_BY_CHECKPOINT) > _MEMORY:
            _BY_CHECKPOINT.popitem(last=False)


def find(df: DataFrame) -> Record | None:
    """The record of ``df``, or of the first DataFrame-executor result that its plan reads."""
    own = getattr(df, _ATTRIBUTE, None) if not _is_column(df) else None
    if isinstance(own, Record):
        return own
    return next((_BY_CHECKPOINT[c] for c in _checkpoints(df) if c in _BY_CHECKPOINT), None)


def _is_column(df: DataFrame) -> bool:
    """A DataFrame may have a column of the attribute's name, and ``getattr`` would give that."""
    return _ATTRIBUTE not in vars(df)


def _checkpoints(df: DataFrame) -> list[tuple[str, int]]:
    """The RDDs that the plan of a classic DataFrame reads: application and RDD id."""
    if is_connect(df):
        return []
    check_running(df.sparkSession)
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001 - pyspark has no public way to a plan
    application = df.sparkSession.sparkContext.applicationId
    found = []
    for position in range(leaves.size()):
        leaf = leaves.apply(position)
        if leaf.getClass().getSimpleName() == "LogicalRDD":
            found.append((application, int(leaf.rdd().id())))
    return found
