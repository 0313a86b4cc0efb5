"""Turn a relation of a Datalog text into the program of a maintained table.

If the relation is the only recursion of its text, over inputs and relations without recursion, it becomes a
``Program`` with base and step. Any other text is computed as a whole in each refresh.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.datalog import Relations, datalog
from pyspark_paralagg.maintenance.program import (
    IGNORED_OPTIONS,
    Program,
    Recursion,
    Sources,
    aggregator_texts,
    references,
    semantic_confs,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_paralagg.maintenance.program import Frames


@dataclass(frozen=True)
class Text:
    """A text, the relation that is maintained, and the options of ``ra.datalog``."""

    text: str
    relation: str
    options: Mapping[str, Any]
    aggregators: Sequence[Any]

    def program(self, spark: SparkSession, schemas: Mapping[str, StructType]) -> Program | WholeText:
        """Return the program over sources of these schemas. Raises as ``ra.datalog``."""
        sources = references(spark, schemas)
        relations = self.relations(spark, sources)
        recursion = relations.single(self.relation)
        if isinstance(recursion, str):
            return WholeText(spark, self, relations, recursion)
        declaration, step, options = recursion
        name = self.relation

        def step_with_sources(state: DataFrame, _: Sources) -> DataFrame:
            return step(**{name: state})[name]

        arguments = Recursion(
            name=name,
            keys=declaration.keys,
            aggs=declaration.aggs,
            base=lambda _: declaration.base,
            step=step_with_sources,
            options={k: v for k, v in options.items() if k != "name"},
        )
        return Program(spark, arguments, sources)

    def relations(self, spark: SparkSession, frames: Frames) -> Relations:
        """Return the text's relations over these inputs."""
        return datalog(spark, self.text, dict(frames), aggregators=self.aggregators, **self.options)


class WholeText:
    """A text that each refresh computes as a whole, with the interface of ``Program`` for full refreshes."""

    def __init__(self, spark: SparkSession, text: Text, relations: Relations, reason: str) -> None:
        self._spark = spark
        self._text = text
        self._relations: Relations | None = None
        self.columns = relations.columns(text.relation)
        self.obstacle = f"only a single recursion over inputs can continue from its rows: {reason}"
        self.unstable: str | None = None
        options = {k: repr(v) for k, v in text.options.items() if k not in IGNORED_OPTIONS}
        aggregators = [aggregator_texts(spark, r) for r in relations.combined()]
        parts = [text.text, text.relation, options, self.columns, aggregators, semantic_confs(spark)]
        self.fingerprint = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def whole(self, frames: Frames) -> DataFrame:
        """Return the relation over these rows."""
        self._relations = self._text.relations(self._spark, frames)  # its deletion would free the cached recursions
        return self._relations[self._text.relation]

    def obstacle_after(self, whole: DataFrame) -> str:  # noqa: ARG002 - as in Program
        """Return ``obstacle``."""
        return self.obstacle
