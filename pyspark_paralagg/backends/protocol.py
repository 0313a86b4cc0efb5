"""What an executor is given (a Job) and what it gives back.

``dataframe`` makes the Job, ``choose`` hands it to a backend. Everything in it is checked: the rows of base and initial
have the relation's columns in the relation's order and types, and so have those that ``Job.apply`` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from pyspark_paralagg.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.program.expr import Call
    from pyspark_paralagg.program.program import JoinOrder, Mode, Relation

Step = Callable[[Mapping[str, "DataFrame"]], "dict[str, DataFrame]"]


@dataclass(frozen=True)
class Seed:
    """A relation with the rows that it starts from."""

    relation: Relation
    base: DataFrame
    initial: DataFrame | None = None

    @property
    def accumulating(self) -> tuple[str, ...]:
        """The columns whose changes are numbers: ``sum`` and ``count``."""
        return tuple(d.column.name for d in self.relation.dependents if d.aggregator in ("sum", "count"))


@dataclass(frozen=True)
class Job:
    """One recursion: relations, step, and what was asked of the run.

    ``apply`` is the user's step with its result checked and conformed: relation name to rows, in and out.
    """

    name: str
    session: SparkSession
    seeds: tuple[Seed, ...]
    apply: Step
    mode: Mode = "auto"
    assume: tuple[Call, ...] = ()
    max_iterations: int | None = None
    on_limit: Literal["error", "return"] = "error"
    tolerance: float | None = None
    join_order: JoinOrder = "cost"

    def refuse_settled(self, who: str) -> None:
        """``UnsupportedError`` where a relation continues from settled rows, which ``who`` cannot."""
        for seed in self.seeds:
            if seed.relation.settled:
                raise UnsupportedError(
                    "PARALAGG_NOT_CONTINUABLE",
                    f"{who} begin anew each time, and {seed.relation.name!r} goes on from the rows that it has",
                    value=seed.relation.name,
                    place=f"relation {seed.relation.name}",
                    hint='only backend="spark" continues a fixpoint',
                )

    def seed(self, relation: str) -> Seed:
        """The seed of the relation called ``relation``."""
        return next(s for s in self.seeds if s.relation.name == relation)


class Backend(Protocol):
    """An executor."""

    name: str

    def obstacle(self, session: SparkSession) -> str | None:
        """Why no job can run here at all in this session; None where it can. The first cause only."""

    def run(self, job: Job, reason: str) -> dict[str, DataFrame]:
        """The result of each relation. ``reason`` says why this backend was taken; the report repeats it.

        Raises ``UnsupportedError`` before anything has run, where this very job is beyond the backend.
        """
