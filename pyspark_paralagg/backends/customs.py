"""Analyse the lambdas of user-defined aggregators with Spark, and add the expressions to the relations.

They are analysed together with the steps, so that both share one table of handles. ``reference`` returns the DataFrame
that stands for a row of old and new values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.lowering.struct_type import struct_of
from pyspark_paralagg.program.custom import Custom, custom_from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from pyspark_paralagg.program.program import Relation

_NAME = "paralagg aggregator {}"


class Customs:
    """The user-defined aggregators of some relations, each once for each list of column types."""

    def __init__(self, relations: Sequence[Relation], reference: Callable[[str, StructType], DataFrame]) -> None:
        self._reference = reference
        self._uses: list[tuple[Custom, tuple[str, ...]]] = []
        self._filled: list[Custom] = []
        for r in relations:
            for position, d in enumerate(r.dependents):
                if d.custom is not None and d.part == 0:
                    use = (d.custom, _types(r, position, d.custom))
                    self._uses += [use] if use not in self._uses else []

    def frames(self) -> dict[str, DataFrame]:
        """Return a projection for each aggregator, over the columns old, then new; analysed like a step."""
        return {_NAME.format(n): self._frame(*use) for n, use in enumerate(self._uses)}

    def read(self, step_json: dict[str, Any]) -> dict[str, Any]:
        """Store the analysed aggregators of ``step_json``, and return the rest of the analysis."""
        by_name = {s["name"]: s for s in step_json["steps"]}
        names = [_NAME.format(n) for n in range(len(self._uses))]
        self._filled = [
            replace(custom, source=None) if custom.combine else custom_from_json(custom, by_name[n]["plan"])
            for n, (custom, _) in zip(names, self._uses, strict=True)
        ]
        return {**step_json, "steps": [s for s in step_json["steps"] if s["name"] not in names]}

    def filled(self, relation: Relation) -> Relation:
        """Return ``relation`` with the analysed expressions of its aggregators."""
        dependents = list(relation.dependents)
        for position, d in enumerate(dependents):
            if d.custom is not None:
                use = (d.custom, _types(relation, position - d.part, d.custom))
                dependents[position] = replace(d, custom=self._filled[self._uses.index(use)])
        return replace(relation, dependents=tuple(dependents))

    def _frame(self, custom: Custom, types: tuple[str, ...]) -> DataFrame:
        fields = [(f"{side}{n}", t) for side in ("old", "new") for n, t in enumerate(types)]
        columns = self._reference(custom.name, struct_of(fields, nullable=False))
        old, new = ([columns[f"{side}{n}"] for n in range(len(types))] for side in ("old", "new"))
        values = custom.source.combined(old, new)
        if custom.source.has_improves:
            values.append(custom.source.improved(old, new))
        return columns.select(*(v.alias(f"c{n}") for n, v in enumerate(values)))


def _types(relation: Relation, position: int, custom: Custom) -> tuple[str, ...]:
    return tuple(d.column.type for d in relation.dependents[position : position + len(custom.columns)])
