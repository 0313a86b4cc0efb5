"""Turn a relation of a Datalog text into the programs of a maintained table.

If the relation recurses, it becomes ``Layers``: a program for each recursion that it needs, with the relations without
recursion as parts of their plans. Any other text is computed as a whole in each refresh.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.datalog import Relations, datalog
from pyspark_paralagg.delta.layers import Layers, source_of
from pyspark_paralagg.maintenance.program import IGNORED_OPTIONS, Program, aggregator_texts, semantic_confs
from pyspark_paralagg.maintenance.recursion import Declared, Recursion, Sources, references, relation_reference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_paralagg.api.dataframe import Declaration
    from pyspark_paralagg.api.strata import Layer, Step
    from pyspark_paralagg.maintenance.recursion import Frames


@dataclass(frozen=True)
class Text:
    """A text, the relation that is maintained, and the options of ``ra.datalog``."""

    text: str
    relation: str
    options: Mapping[str, Any]
    aggregators: Sequence[Any]

    def program(self, spark: SparkSession, schemas: Mapping[str, StructType]) -> Layers | WholeText:
        """Return the program over sources of these schemas. Raises as ``ra.datalog``."""
        sources = references(spark, schemas)
        relations, programs = self.relations(spark, sources), list[Program]()

        def build(layer: Layer) -> dict[str, DataFrame]:
            programs.append(Program(spark, _recursion(*layer), sources))
            return {r.name: relation_reference(spark, source_of(r.name), r) for r in programs[-1].relations}

        reason = relations.layers(self.relation, build)
        if reason is not None:
            return WholeText(spark, self, relations, reason)
        return Layers(programs, self.relation, WholeText(spark, self, relations, "").whole)

    def relations(self, spark: SparkSession, frames: Frames) -> Relations:
        """Return the text's relations over these inputs."""
        return datalog(spark, self.text, dict(frames), aggregators=self.aggregators, **self.options)


def _recursion(declarations: Mapping[str, Declaration], step: Step, options: Mapping[str, Any]) -> Recursion:
    return Recursion(
        {n: Declared(d.keys, d.aggs, partial(_no_source, d.base)) for n, d in declarations.items()},
        lambda state, _: step(**state),
        {k: v for k, v in options.items() if k != "name"},
    )


def _no_source(base: DataFrame, _: Sources) -> DataFrame:
    """Return ``base``, which is over references to the sources already."""
    return base


class WholeText:
    """A text that each refresh computes as a whole, with the interface of ``Layers`` for full refreshes."""

    def __init__(self, spark: SparkSession, text: Text, relations: Relations, reason: str) -> None:
        self._spark = spark
        self._text = text
        self._relations: Relations | None = None
        self.columns = relations.columns(text.relation)
        self.obstacle = f"only a recursion over inputs and other recursions can continue from its rows: {reason}"
        self.unstable: str | None = None
        options = {k: repr(v) for k, v in text.options.items() if k not in IGNORED_OPTIONS}
        aggregators = [aggregator_texts(spark, r) for r in relations.combined()]
        parts = [text.text, text.relation, options, self.columns, aggregators, semantic_confs(spark)]
        self.fingerprint = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def whole(self, frames: Frames) -> DataFrame:
        """Return the relation over these rows."""
        self._relations = self._text.relations(self._spark, frames)  # its deletion would free the cached recursions
        return self._relations[self._text.relation]
