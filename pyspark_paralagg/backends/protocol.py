"""Define Job, the input of an executor, and Backend, the protocol of executors.

``api.dataframe`` makes the Job, ``choose`` passes it to a backend. Its rows are checked: base, initial rows and the
result of ``Job.apply`` have the relation's columns, in the relation's order and types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.traced import traced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.kept import Keeping
    from pyspark_paralagg.program.expr import Call
    from pyspark_paralagg.program.program import JoinOrder, Mode, Relation
    from pyspark_paralagg.program.question import Question

Step = Callable[[Mapping[str, "DataFrame"]], "dict[str, DataFrame]"]


@dataclass(frozen=True)
class Seed:
    """A relation with its base and initial rows."""

    relation: Relation
    base: DataFrame
    initial: DataFrame | None = None

    @property
    def output(self) -> Relation:
        """Return the relation of the compiled program that has the rows: with hops and parents, if they are asked."""
        return traced(self.relation).result if self.relation.traces else self.relation

    @property
    def accumulating(self) -> tuple[str, ...]:
        """Return the columns that add up: ``sum`` and ``count``."""
        return tuple(d.column.name for d in self.relation.dependents if d.definition.is_sum)


@dataclass(frozen=True)
class Job:
    """One recursion: relations, step, and the options of the run.

    ``apply`` is the user's step with its result checked and conformed: it maps relation names to rows, in and out.
    ``together`` are relations that the user reads: where they are mutually recursive, one run computes them all.
    ``question`` adds a relation with its answer to the results. ``functors`` are called on rows of the recursion.
    ``max_rows`` ends a set, the only relation. ``keeping``: the Spark engine keeps the state of a settled relation.
    ``removed`` is the step over rows that a kept state loses.
    ``analysis`` gets the analysed step, which a question reads again.
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
    together: tuple[str, ...] = ()
    question: Question | None = None
    functors: tuple[str, ...] = ()
    max_rows: int | None = None
    keeping: Keeping | None = None
    removed: Step | None = None
    analysis: list[Any] = field(default_factory=list)

    @property
    def outputs(self) -> dict[str, str]:
        """Return the relations of the compiled program that the engine returns, by the names of the results."""
        own = {s.relation.name: s.output.name for s in self.seeds}
        return own if self.question is None else {**own, self.question.name: self.question.name}

    @property
    def starts(self) -> list[DataFrame]:
        """Return bases and initial rows, in the order in which the compiler numbers them as sources."""
        return [rows for s in self.seeds for rows in (s.base, s.initial) if rows is not None]

    def refuse_settled(self, executors: str) -> None:
        """Raise ``UnsupportedError`` if a relation continues from settled rows, which ``executors`` cannot."""
        for seed in self.seeds:
            if seed.relation.settled:
                raise UnsupportedError(
                    "PARALAGG_NOT_CONTINUABLE",
                    f"{executors} cannot continue {seed.relation.name!r} from its stored rows",
                    value=seed.relation.name,
                    place=f"relation {seed.relation.name}",
                    hint='use backend="spark", which can continue a fixpoint',
                )

    def refuse_functors(self, executor: str) -> None:
        """Raise ``UnsupportedError`` if the recursion calls functors on its rows, which ``executor`` cannot."""
        if self.functors:
            raise UnsupportedError(
                "PARALAGG_FUNCTOR_BACKEND",
                f"{executor} cannot call the functor `{self.functors[0]}`, a Python function, on rows of a recursion",
                value=self.functors[0],
                place=f"relation {self.name}",
                hint='use backend="auto" or "dataframe", or call it in a rule that does not recurse',
            )

    def seed(self, relation: str) -> Seed:
        """Return the seed of the relation with the name ``relation``."""
        return next(s for s in self.seeds if s.relation.name == relation)


class Backend(Protocol):
    """An executor."""

    name: str

    def obstacle(self, session: SparkSession) -> str | None:
        """Return the first cause why this backend cannot run any job in this session; None if it can."""

    def run(self, job: Job, reason: str) -> dict[str, DataFrame]:
        """Return the result of each relation. ``reason``, why this backend was chosen, appears in the report.

        Raises ``UnsupportedError`` before anything runs if the backend does not support this job.
        """
