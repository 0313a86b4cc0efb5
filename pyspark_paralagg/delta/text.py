"""A relation of a Datalog text as the program of a maintained table.

Beside ``program``: where the relation is the only recursion of its text, over inputs and what plain rules make of them,
base and step are those of a ``Program``. Any other text is computed as a whole each time.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.datalog import Relations, datalog
from pyspark_paralagg.delta.program import (
    MEANINGLESS,
    Program,
    Recursion,
    Sources,
    aggregator_texts,
    confs_of_meaning,
    references,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_paralagg.delta.program import Frames


@dataclass(frozen=True)
class Text:
    """A text, which of its relations is kept, and the options of ``ra.datalog``."""

    text: str
    relation: str
    options: Mapping[str, Any]
    aggregators: Sequence[Any]

    def program(self, spark: SparkSession, schemas: Mapping[str, StructType]) -> Program | WholeText:
        """The program over sources of these schemas; raises what ``ra.datalog`` raises."""
        sources = references(spark, schemas)
        relations = self.bound(spark, sources)
        found = relations.single(self.relation)
        if isinstance(found, str):
            return WholeText(spark, self, relations, found)
        declaration, step, options = found
        name = self.relation

        def stepped(state: DataFrame, _: Sources) -> DataFrame:
            return step(**{name: state})[name]

        recursion = Recursion(
            name=name,
            keys=declaration.keys,
            aggs=declaration.aggs,
            base=lambda _: declaration.base,
            step=stepped,
            options={k: v for k, v in options.items() if k != "name"},
        )
        return Program(spark, recursion, sources)

    def bound(self, spark: SparkSession, frames: Frames) -> Relations:
        """The text's relations over these inputs."""
        return datalog(spark, self.text, dict(frames), aggregators=self.aggregators, **self.options)


class WholeText:
    """A text that is always computed as a whole; what a ``Program`` tells of itself, without continuing."""

    def __init__(self, spark: SparkSession, text: Text, relations: Relations, why: str) -> None:
        self._spark = spark
        self._text = text
        self._relations: Relations | None = None
        self.columns = relations.columns(text.relation)
        self.obstacle = f"only a single recursion over inputs goes on from its rows: {why}"
        self.unstable: str | None = None
        options = {k: repr(v) for k, v in text.options.items() if k not in MEANINGLESS}
        own = [aggregator_texts(spark, r) for r in relations.combined()]
        shown = [text.text, text.relation, options, self.columns, own, confs_of_meaning(spark)]
        self.fingerprint = hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()

    def whole(self, frames: Frames) -> DataFrame:
        """The relation over these rows."""
        self._relations = self._text.bound(self._spark, frames)  # what it shares is cached as long as it lives
        return self._relations[self._text.relation]

    def unfit(self, whole: DataFrame) -> str:  # noqa: ARG002 - as a Program has it
        """As ``obstacle``."""
        return self.obstacle
