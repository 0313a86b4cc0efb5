"""What a text is once it is resolved: a Program, and what is needed to run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.resolve.shapes import HOLDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.parse.syntax import Assume, Span
    from pyspark_paralagg.datalog.resolve.shapes import Shape
    from pyspark_paralagg.program.program import Column, Program


Row = tuple[int | float | str | bool, ...]


@dataclass(frozen=True)
class Source:
    """Where a relation's given rows come from: ``rows`` of the text, and from outside where ``is_external``."""

    relation: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    is_external: bool


@dataclass(frozen=True)
class Resolved:
    """A resolved text.

    ``Input.source`` counts ``sources``; ``shapes`` has all relations, ``mentioned`` those that the text names;
    ``spans`` finds a rule by its ``place``, ``input_spans`` an ``.input`` by its relation; ``assumed`` names an
    input's column each; ``overflowing`` is where unsigned numbers are added up or multiplied first.
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

    def names(self, relation: str) -> tuple[str, ...]:
        """The columns of a relation as the text has them."""
        return self.shapes[relation].columns or (HOLDS,)
