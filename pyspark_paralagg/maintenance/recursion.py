"""The user's arguments of a maintained recursion: its relations and its step, as functions of ``Sources``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.lowering.struct_type import struct_of
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.session.arguments import check_callable
from pyspark_paralagg.session.attach import reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_paralagg.api.relations import Aggregations, Keys
    from pyspark_paralagg.program.program import Relation

Frames = Mapping[str, "DataFrame"]
SOURCE = "source "
"""The prefix of a source's name in a plan over references, which tells it from a relation."""


class Sources(Mapping[str, "DataFrame"]):
    """The argument ``t`` of ``base`` and ``step``: a DataFrame for each source."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames

    def __getitem__(self, name: str) -> DataFrame:
        """Return the source ``name``; raise ``UsageError`` if there is none."""
        if name not in self._frames:
            hint = did_you_mean(name, self._frames)
            raise UsageError("PARALAGG_DELTA_SOURCE", f"the source {name!r} does not exist", value=name, hint=hint)
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)


def references(spark: SparkSession, schemas: Mapping[str, StructType]) -> Sources:
    """Return references to sources of these columns, without rows; a program is analysed over them."""
    return Sources({name: reference(spark, SOURCE + name, _nullable(schema)) for name, schema in schemas.items()})


def relation_reference(spark: SparkSession, name: str, relation: Relation) -> DataFrame:
    """Return a reference to a source ``name`` with the columns of ``relation``."""
    return reference(spark, SOURCE + name, struct_of([(c.name, c.type) for c in relation.columns]))


@dataclass(frozen=True)
class Declared:
    """The keys and aggregates of a relation, and its base over ``Sources``."""

    keys: Keys
    aggs: Aggregations
    base: Callable[[Sources], DataFrame]


@dataclass(frozen=True)
class Recursion:
    """The relations of a recursion, and their step over the relations and ``Sources``; options of ``recursive``."""

    relations: Mapping[str, Declared]
    step: Callable[[Frames, Sources], Frames]
    options: Mapping[str, Any]

    @classmethod
    def single(  # noqa: PLR0913, PLR0917 - the arguments of recursive_agg
        cls,
        name: str,
        keys: Keys,
        aggs: Aggregations,
        base: Callable[[Sources], DataFrame],
        step: Callable[[DataFrame, Sources], DataFrame],
        options: Mapping[str, Any],
    ) -> Recursion:
        """Return the recursion of one relation; raise ``UsageError`` if base or step cannot be called."""
        check_callable("base", base, "pass a function of the sources: base=lambda t: t[...]")
        hint = "pass a function of the rows and the sources: step=lambda r, t: r.join(t[...], ...).select(...)"
        check_callable("step", step, hint)
        return cls({name: Declared(keys, aggs, base)}, lambda state, t: {name: step(state[name], t)}, options)

    @property
    def name(self) -> str:
        """Return the names of the relations."""
        return "_".join(self.relations)


def _nullable(schema: StructType) -> StructType:
    """Make all columns nullable: rows of a change feed, or of a later version, may have nulls."""
    from pyspark.sql.types import StructField  # noqa: PLC0415 - pyspark is optional

    return type(schema)([StructField(f.name, f.dataType, nullable=True) for f in schema.fields])
