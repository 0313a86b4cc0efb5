"""Find hops and parents of rows with plain DataFrames: the search of ``trace_paths``, one round for each hop.

The step gets only the rows that the round before has found, and carries their keys to the rows that it derives. A
derived row is *tight* if it has the key and the best value of a final row. The first round that finds a row gives its
hops, and the smallest of the parents in that round is the row's parent. Nulls are larger than any value, as in the
engines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.backends.analysed import references_of
from pyspark_paralagg.compile.rewrite.added import no_single_parent, unfinished
from pyspark_paralagg.compile.rewrite.trace_paths import CHANGED_PARENTS
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.lowering.joins import other, renamed, same
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.program.traced import HOPS_TYPE, step_columns, traced
from pyspark_paralagg.session.attach import shim_if_there

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from pyspark_paralagg.backends.protocol import Job, Seed

_PARENT = "paralagg parent"


class PathSearch:
    """The search for the paths of one relation.

    Raises ``UsageError`` ``PARALAGG_PATH`` for rows without a single parent, and for limits that return unfinished
    rows. Raises ``UnsupportedError`` ``PARALAGG_PATH_UNSUPPORTED`` if the step cannot carry keys.
    """

    def __init__(self, job: Job, seed: Seed, reason: str) -> None:
        self.relation = seed.relation
        self._seed = seed
        self._reason = reason
        if job.max_iterations is not None and job.on_limit == "return":
            raise unfinished(self.relation.name, job.max_iterations, "PARALAGG_PATH", CHANGED_PARENTS)
        shim = shim_if_there(job.session)
        if shim is None:
            raise self._unsupported("find the row before each row through the package's jar, which this session lacks")
        self._shim = shim
        self._names = traced(self.relation)
        self._keys = [k.name for k in self.relation.keys]
        self._order = self.relation.traces[0].kind.order
        self._decided = [*self._keys, *([] if self._order is None else [self._order])]
        self._best = next((d.aggregator for d in self.relation.dependents if d.column.name == self._order), None)
        self._step = job.apply(references_of(job, shim))[self.relation.name]
        self._carried(seed.base.select(*self._of_nothing()))

    def run(self, final: DataFrame, checkpoint: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """Return the ``final`` rows with hops and the columns of their parents; null for a row that has no path."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - pyspark is optional

        hops = self._names.hops
        types = dict(self._step.select(*map(quoted, step_columns(self.relation))).dtypes)
        types = {**{p: k.type for p, k in zip(self._names.parents, self.relation.keys, strict=False)}, **types}
        way = [field for name in types for field in (F.col(quoted(name)).isNull(), F.col(quoted(name)))]
        way = [field.alias(f"f{n}") for n, field in enumerate(way)] or [F.lit(0).alias("f0")]
        none = F.struct(*way).alias(_PARENT)
        starts = [rows.select(*map(quoted, self._decided)) for rows in (self._seed.base, self._seed.initial) if rows]
        constant = self._carried(final.limit(0)).where(F.col(quoted(hops)).isNull())
        derived = constant.select(*map(quoted, self._decided))
        for rows in starts:
            derived = derived.unionAll(rows)
        nulls = [F.lit(None).cast(type_).alias(name) for name, type_ in types.items()]
        derived = derived.select("*", *nulls).select(*map(quoted, self._decided), none)
        state = final.select("*", F.lit(None).cast(HOPS_TYPE).alias(hops), F.lit(None).alias(_PARENT))
        state = state.withColumn(_PARENT, F.lit(None).cast(derived.schema[_PARENT].dataType))
        level = 0
        while True:
            state = checkpoint(self._with_level(state, derived, level))
            found = state.where(F.col(quoted(hops)) == level)
            if found.isEmpty():
                break
            derived = self._carried(found.drop(hops, _PARENT)).where(F.col(quoted(hops)).isNotNull())
            derived = derived.select(*map(quoted, self._decided), none)
            level += 1
        parts = [F.col(quoted(_PARENT))[f"f{2 * n + 1}"].alias(name) for n, name in enumerate(types)]
        return checkpoint(state.select(*map(quoted, final.columns), quoted(hops), *parts))

    def _with_level(self, state: DataFrame, derived: DataFrame, level: int) -> DataFrame:
        """Return ``state`` with hops and parents of the rows without them that ``derived`` has."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - pyspark is optional

        hops, parent = self._names.hops, other(_PARENT)
        best = derived.groupBy(*map(quoted, self._decided)).agg(F.min(quoted(_PARENT)).alias(_PARENT))
        best = renamed(best, [*self._decided, _PARENT])
        is_open = F.col(quoted(hops)).isNull()
        if self._order is not None:
            is_open &= F.col(quoted(self._order)).isNotNull()
        joined = state.join(best, is_open & same(self._decided), "left")
        is_found = F.col(quoted(parent)).isNotNull()
        values: dict[str, Column] = {
            hops: F.when(is_found, F.lit(level).cast(HOPS_TYPE)).otherwise(F.col(quoted(hops))),
            _PARENT: F.coalesce(quoted(parent), quoted(_PARENT)),
        }
        return joined.select(*(values[c].alias(c) if c in values else quoted(c) for c in state.columns))

    def _carried(self, rows: DataFrame) -> DataFrame:
        """Return what the step derives from ``rows``, with their keys as columns of parents, and a mark."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - pyspark is optional

        parents = [F.col(quoted(k)).alias(p) for k, p in zip(self._keys, self._names.parents, strict=False)]
        further = [*parents, F.lit(0).cast(HOPS_TYPE).alias(self._names.hops)]
        carried = self._shim.carried(
            self._step, self.relation.name, rows.select("*", *further), len(further), self._best
        )
        if not isinstance(carried, str):
            return carried
        kind, _, cause = carried.partition("|")
        if kind == "parents":
            raise no_single_parent(self.relation.name, f"step of {self.relation.name}", cause)
        raise self._unsupported(f"cannot follow rows through the operator {cause}")

    def _of_nothing(self) -> list[Column]:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - pyspark is optional

        return [F.lit(None).cast(c.type).alias(c.name) for c in self.relation.columns]

    def _unsupported(self, problem: str) -> UnsupportedError:
        return UnsupportedError(
            "PARALAGG_PATH_UNSUPPORTED",
            f"plain DataFrames {problem}; {self.relation.name!r} has hops or paths",
            value=self.relation.traces[0].name,
            place=f"relation {self.relation.name}",
            hint=f"use a step that an engine supports; plain DataFrames were to run it because of this: {self._reason}",
        )
