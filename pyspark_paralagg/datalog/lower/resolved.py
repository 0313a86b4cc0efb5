"""Define a resolved text: its Program, and the tables needed to run it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.resolve.shapes import HOLDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.parse.syntax import Assume, Span, TracedColumn
    from pyspark_paralagg.datalog.resolve.shapes import Shape
    from pyspark_paralagg.program.program import Column, Program


Row = tuple[int | float | str | bool, ...]


@dataclass(frozen=True)
class Source:
    """The source of a relation's rows: ``rows`` are the text's facts; ``is_external`` if an input adds more."""

    relation: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    is_external: bool


@dataclass(frozen=True)
class Resolved:
    """A resolved text.

    ``Input.source`` is a position in ``sources``. ``shapes`` has all relations, ``mentioned`` those that the text
    names. ``spans`` maps a rule's ``place`` to its span, ``input_spans`` a relation to its ``.input``. Each of
    ``assumed`` has the relation of its column. ``overflowing`` is the first sum or product of unsigned numbers.
    ``traces`` has the columns of hops and paths, which no shape has.
    """

    program: Program
    sources: tuple[Source, ...]
    shapes: Mapping[str, Shape]
    mentioned: frozenset[str]
    outputs: tuple[str, ...]
    assumed: tuple[Assume, ...]
    spans: Mapping[str, Span]
    input_spans: Mapping[str, Span]
    places: Places
    overflowing: Span | None = None
    traces: Mapping[str, tuple[TracedColumn, ...]] = field(default_factory=dict)

    def names(self, relation: str) -> tuple[str, ...]:
        """Return the names of a relation's columns in the text's order, those of hops and paths included."""
        names = list(self.shapes[relation].columns or (HOLDS,))
        for traced in self.traces.get(relation, ()):  # by position
            names.insert(traced.position, traced.name)
        return tuple(names)
