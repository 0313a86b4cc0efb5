"""Lets Spark analyse the lambdas of users' aggregators, beside the steps, and puts the expressions into the relations.

Used by the Spark engine's adapter: the expressions' handles point into the same table as those of the steps.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.program.custom import Custom, custom_from_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.program.program import Relation

_NAME = "paralagg aggregator {}"


class Customs:
    """The users' aggregators of some relations, each once for the types of its columns."""

    def __init__(self, session: SparkSession, relations: Sequence[Relation]) -> None:
        self._session = session
        self._uses: list[tuple[Custom, tuple[str, ...]]] = []
        self._filled: list[Custom] = []
        for r in relations:
            for position, d in enumerate(r.dependents):
                if d.custom is not None and d.part == 0:
                    use = (d.custom, _types(r, position, d.custom))
                    self._uses += [use] if use not in self._uses else []

    def frames(self) -> dict[str, DataFrame]:
        """One projection for each, of the columns old, then new; analysed like a step."""
        return {_NAME.format(n): self._frame(*use) for n, use in enumerate(self._uses)}

    def read(self, step_json: dict[str, Any]) -> dict[str, Any]:
        """Keeps what became of ``frames``; returns the rest of the analysis."""
        by_name = {s["name"]: s for s in step_json["steps"]}
        names = [_NAME.format(n) for n in range(len(self._uses))]
        self._filled = [
            custom_from_json(custom, by_name[n]["plan"]) for n, (custom, _) in zip(names, self._uses, strict=True)
        ]
        return {**step_json, "steps": [s for s in step_json["steps"] if s["name"] not in names]}

    def filled(self, relation: Relation) -> Relation:
        """``relation`` with the expressions of its aggregators."""
        dependents = list(relation.dependents)
        for position, d in enumerate(dependents):
            if d.custom is not None:
                use = (d.custom, _types(relation, position - d.part, d.custom))
                dependents[position] = replace(d, custom=self._filled[self._uses.index(use)])
        return replace(relation, dependents=tuple(dependents))

    def _frame(self, custom: Custom, types: tuple[str, ...]) -> DataFrame:
        fields = [(f"{side}{n}", t) for side in ("old", "new") for n, t in enumerate(types)]
        both = reference(self._session, custom.name, fields)
        old, new = ([both[f"{side}{n}"] for n in range(len(types))] for side in ("old", "new"))
        values = custom.source.combined(old, new)
        if custom.source.has_improves:
            values.append(custom.source.improved(old, new))
        return both.select(*(v.alias(f"c{n}") for n, v in enumerate(values)))


def reference(session: SparkSession, name: str, fields: Sequence[tuple[str, str]]) -> DataFrame:
    """A DataFrame without rows or plan, as steps get for a relation; its columns are never null."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame  # noqa: PLC0415 - pyspark is optional
    from pyspark.sql.types import DataType, StructType  # noqa: PLC0415 - as above

    from pyspark_paralagg.session import bridge  # noqa: PLC0415 - it may import this package's public names

    schema = StructType()
    for column, type_ in fields:
        schema.add(column, DataType.fromDDL(type_), nullable=False)
    jsession = session._jsparkSession  # noqa: SLF001 - pyspark has no public way to the JVM session
    return ClassicDataFrame(bridge(session).reference(jsession, name, json.dumps(schema.jsonValue())), session)


def _types(relation: Relation, position: int, custom: Custom) -> tuple[str, ...]:
    return tuple(d.column.type for d in relation.dependents[position : position + len(custom.columns)])
