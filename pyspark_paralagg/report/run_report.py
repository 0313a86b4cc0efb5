"""Report what a run did: its executor and the reason, iterations, times, rows, bytes.

All executors fill the same :class:`RunReport`. The Spark engine keeps its report in the JVM with the fixpoint. The
DataFrame executor keeps it in this module, under the checkpoint that its result reads. In a classic session the report
is therefore found after ``filter``, ``join`` and the like. Over Connect only the returned DataFrame has its report.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem, UsageError
from pyspark_paralagg.report.recent import Recent
from pyspark_paralagg.session.running import check_running, is_connect

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from pyspark.sql import DataFrame

_COLUMNS = ("iteration", "relation", "delta", "total", "seconds", "bytes", "balance", "work", "work_balance")


@dataclass(frozen=True)
class RunReport:
    """The report of one run of a fixpoint.

    ``backend`` is the executor and ``reason`` the reason for its choice. ``iterations`` counts applications of the
    step, including the last one, which changed nothing. ``tuples`` counts the rows of all relations at the end.
    ``seconds`` has ``plan``, ``load``, ``loop`` and ``store``. ``form`` says how the loop was evaluated: by rows (best
    first, with sums by target, or neither; in how many tasks or ranks), by bitmaps, or one carried value at a time.
    ``spilled`` counts the bytes of loaded rows that went to files of Spark's local directories, because memory did not
    hold them. ``mapped`` counts the bytes of indexes and of strings in mapped files there, for the same reason.
    Both are 0 on other executors than Spark's.

    ``rounds`` has one entry for each iteration and relation: ``iteration``, ``relation``, the changed rows (``delta``),
    all rows after it (``total``), ``seconds``, ``bytes``, ``balance``, ``work`` and ``work_balance``. A single rank
    reports several iterations as one entry, with the number of the last one. ``bytes`` were exchanged; ``work`` counts
    the rows of joined sides that rules read, in graphs the edges visited. Relations of one iteration share both: they
    are in the first one's entry. ``balance`` is the largest part of the delta on one task or rank,
    divided by the average: 1.0 is even, the number of tasks means that one task has all. ``work_balance`` is the same
    of the work. All are None if not counted; the balances are also None if there was nothing to do. Runs by bitmaps, or
    value by value (of a key that all rules carry), count no single iterations: ``rounds`` is empty, and ``iterations``
    is the maximum over all blocks or values.

    ``ranks`` has one entry for each MPI rank: ``rank``, ``host``, ``bytes`` (of its relations and indexes),
    ``seconds``, and ``memory`` (the peak of the process). The report's ``seconds`` then also has ``export``, the time
    that writing the inputs took, and ``start``.

    A notebook shows a report as a page; ``to_pandas()`` and ``plot()`` give the details.
    """

    backend: str
    reason: str
    iterations: int
    tuples: int
    seconds: dict[str, float]
    rounds: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    ranks: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    form: str = "rows"
    spilled: int = 0
    mapped: int = 0

    @property
    def totals(self) -> dict[str, int]:
        """Return the number of rows of each relation at the end; empty without ``rounds``."""
        return {entry["relation"]: entry["total"] for entry in self.rounds}

    @property
    def balance(self) -> float | None:
        """Return the balance of the whole run: the mean over ``rounds``, weighted by delta; None if not counted."""
        counted = [(r["delta"], r["balance"]) for r in self.rounds if r.get("balance") is not None]
        changed = sum(delta for delta, _ in counted)
        return sum(delta * balance for delta, balance in counted) / changed if changed else None

    @property
    def work_balance(self) -> float | None:
        """Return the balance of the work of the whole run: the mean over ``rounds``, weighted by work, or None."""
        counted = [(r["work"], r["work_balance"]) for r in self.rounds if r.get("work_balance") is not None]
        done = sum(work for work, _ in counted)
        return sum(work * balance for work, balance in counted) / done if done else None

    def to_pandas(self) -> pd.DataFrame:
        """Return ``rounds`` as pandas, with the columns that are described above."""
        import pandas as pd  # noqa: PLC0415 - slow to load, and rarely needed

        return pd.DataFrame([{c: row.get(c) for c in _COLUMNS} for row in self.rounds], columns=list(_COLUMNS))

    def plot(self) -> Figure:
        """Draw the changed rows and all rows after each iteration, and the time of each iteration, with matplotlib.

        Returns a figure, which notebooks show: ``report.plot().savefig("run.png")``. Raises ``EnvironmentProblem``
        ``PARALAGG_NO_MATPLOTLIB`` without matplotlib, and ``UsageError`` ``PARALAGG_NO_ITERATIONS`` if ``rounds`` is
        empty.
        """
        if not self.rounds:
            message = "this run did not count its iterations, so it has nothing to draw"
            hint = "print the report for its times; runs with bitmaps or one value at a time do not count iterations"
            raise UsageError("PARALAGG_NO_ITERATIONS", message, place="plot", hint=hint)
        try:
            from pyspark_paralagg.report.plots import plot_report  # noqa: PLC0415 - optional, and slow to load
        except ModuleNotFoundError as problem:
            if problem.name is None or problem.name.split(".")[0] != "matplotlib":
                raise
            message = "report.plot() needs matplotlib, which is not installed"
            hint = "pip install 'pyspark-paralagg[plots]'"
            raise EnvironmentProblem("PARALAGG_NO_MATPLOTLIB", message, value="matplotlib", hint=hint) from problem
        return plot_report(self)

    def _repr_html_(self) -> str:
        """Return self-contained HTML for notebooks."""
        from pyspark_paralagg.report.report_page import report_fragment  # noqa: PLC0415 - notebooks only

        return report_fragment(self)

    def to_json(self) -> str:
        """Return the report as one JSON object, which ``from_json`` reads."""
        return json.dumps(
            {
                "backend": self.backend,
                "reason": self.reason,
                "form": self.form,
                "iterations": self.iterations,
                "tuples": self.tuples,
                "work_balance": self.work_balance,
                "seconds": self.seconds,
                "per_iteration": list(self.rounds),
                "ranks": list(self.ranks),
                "spilled": self.spilled,
                "mapped": self.mapped,
            }
        )

    @classmethod
    def from_json(cls, text: str, plan_seconds: float | None = None) -> RunReport:
        """Read the JSON of ``to_json`` or of the shim; the shim's lacks the time that Python needed for the plan."""
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
            form=data.get("form", "rows"),
            spilled=data.get("spilled", 0),
            mapped=data.get("mapped", 0),
        )

    def __repr__(self) -> str:
        """Return the report as four lines of text; one more with MPI ranks, and if files were used."""
        spent = ", ".join(f"{name} {value:.3f} s" for name, value in self.seconds.items())
        return (
            f"{self.backend}: {self.iterations:,} iterations, {self.tuples:,} rows\n"
            f"  form: {self.form}\n"
            f"  time: {spent}\n"
            f"{self._shown_ranks()}"
            f"{self._shown_files()}"
            f"  why {self.backend}: {self.reason}"
        )

    def _shown_files(self) -> str:
        if not (self.spilled or self.mapped):
            return ""
        return f"  files: {self.spilled:,} bytes of loaded rows, {self.mapped:,} bytes of indexes (mapped)\n"

    def _shown_ranks(self) -> str:
        if not self.ranks:
            return ""
        hosts = len({r.get("host") for r in self.ranks})
        sent = sum(r.get("bytes") or 0 for r in self.rounds)
        where = "one host" if hosts == 1 else f"{hosts} hosts"
        return f"  ranks: {len(self.ranks)} on {where}, {sent:,} bytes sent\n"


@dataclass
class Record:
    """The data kept for a result: its report (None before the run) and the parts of ``explain``."""

    report: RunReport | None = None
    program: str = ""
    plan: str = ""
    plan_seconds: float = 0.0


_BY_CHECKPOINT: Recent[tuple[str, int], Record] = Recent()
_ATTRIBUTE = "_paralagg_record"


def keep(df: DataFrame, record: Record) -> None:
    """Store ``record`` for ``df`` and for the DataFrames derived from it."""
    setattr(df, _ATTRIBUTE, record)
    for checkpoint in _checkpoints(df):
        _BY_CHECKPOINT[checkpoint] = record


def find(df: DataFrame) -> Record | None:
    """Return the record of ``df``, or of the first DataFrame-executor result that its plan reads, or None."""
    record = getattr(df, _ATTRIBUTE, None) if not _is_column(df) else None
    if isinstance(record, Record):
        return record
    return next((_BY_CHECKPOINT[c] for c in _checkpoints(df) if c in _BY_CHECKPOINT), None)


def _is_column(df: DataFrame) -> bool:
    """Return whether ``getattr`` would return a column: a DataFrame may have one with the attribute's name."""
    return _ATTRIBUTE not in vars(df)


def _checkpoints(df: DataFrame) -> list[tuple[str, int]]:
    """Return the RDDs that the plan of a classic DataFrame reads: application and RDD id."""
    if is_connect(df):
        return []
    check_running(df.sparkSession)
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001 - pyspark has no public way to a plan
    application = df.sparkSession.sparkContext.applicationId
    checkpoints = []
    for position in range(leaves.size()):
        leaf = leaves.apply(position)
        if leaf.getClass().getSimpleName() == "LogicalRDD":
            checkpoints.append((application, int(leaf.rdd().id())))
    return checkpoints
