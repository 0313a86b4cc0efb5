"""Find the inputs of a step: its largest parts without a recursive relation, each a DataFrame of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.connect import messages
from pyspark_paralagg.connect.frames import frame_of
from pyspark_paralagg.connect.refuse import refuse
from pyspark_paralagg.connect.scope import Attribute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.connect.messages import Message


@dataclass(frozen=True)
class Source:
    """One input: its rows, its name if it has only one, and the DataFrames in it, by plan id."""

    id: int
    frame: DataFrame
    columns: tuple[Attribute, ...]
    name: str | None
    plan_ids: tuple[int, ...]


MARK = "PARALAGG_REFERENCE_OUTSIDE_STEP"
"""A part of the text that Spark shows of the DataFrame which a step receives."""


class Sources:
    """The inputs of one query. Equal parts share one, so it is loaded once."""

    def __init__(self, session: SparkSession, origins: tuple[DataFrame, ...]) -> None:
        self._session = session
        self._origins = origins
        self._by_message: dict[bytes, Source] = {}

    def __iter__(self) -> Iterator[Source]:
        return iter(self._by_message.values())

    def add(self, relation: Message) -> Source:
        """Return the source of ``relation``, an existing one if it is the same."""
        alias = relation.subquery_alias.alias if relation.WhichOneof("rel_type") == "subquery_alias" else None
        plan_ids = tuple(messages.plan_ids(relation))
        while relation.WhichOneof("rel_type") == "subquery_alias":
            relation = relation.subquery_alias.input
        names = set(messages.names(relation))
        name = alias or (names.pop() if len(names) == 1 else None)
        key = messages.identity(relation)
        known = self._by_message.get(key)
        if known is None:
            frame = frame_of(self._session, lambda *_, part=relation: part, self._origins)
            if messages.may_read_a_view(relation) and MARK in _explained(frame):
                refuse("a temporary view of the step's relation", name, "use the DataFrame that the step receives")
            fields = frame.schema.fields
            columns = tuple(Attribute("", f.name, f.dataType.simpleString(), f.nullable) for f in fields)
            known = self._by_message[key] = Source(len(self._by_message), frame, columns, name, plan_ids)
        columns = tuple(replace(a, qualifier=name) for a in known.columns)
        return replace(known, columns=columns, plan_ids=plan_ids)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the sources as in Step JSON. Over Connect no client knows their sizes."""
        return [
            {
                "id": s.id,
                "columns": [{"name": a.name, "type": a.type, "nullable": a.nullable} for a in s.columns],
                "size": None,
                "name": s.name,
            }
            for s in self
        ]


def _explained(frame: Any) -> str:  # noqa: ANN401 - Connect's own class
    text: str = frame._explain_string(extended=True)  # noqa: SLF001 - `explain` prints it
    return text
