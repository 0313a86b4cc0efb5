"""Define what a job may be asked beside its result: a relation that is computed from the final rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program


class Question(Protocol):
    """Rules that are added to a Program before it is compiled, and the relation with the answer."""

    @property
    def name(self) -> str:
        """Return the name of the relation with the answer."""

    def rewrite(self, program: Program) -> Program:
        """Return the program with the relation ``name``."""
