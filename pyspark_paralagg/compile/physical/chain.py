"""Define Chain, the result of ``binarize``: a linear chain of probes and filters, without indexes or placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pyspark_paralagg.plan.plan import Filter
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Rule


@dataclass(frozen=True)
class Lookup:
    """A lookup of body atom ``atom`` by ``keys``: pairs of its column and an expression over bound variables."""

    atom: int
    keys: tuple[tuple[int, Expr], ...]
    version: Literal["full", "old"] = "full"


@dataclass(frozen=True)
class Chain:
    """One Δ variant of ``rule``, driven by body atom ``driver``.

    ``driver_binds`` and ``binds`` (by atom) name the variables that a later step reads. ``reason`` explains a join
    order that is not the written one.
    """

    rule: Rule
    driver: int
    version: Literal["delta", "full"]
    steps: tuple[Lookup | Filter, ...]
    emit: tuple[Expr, ...]
    binds: dict[int, tuple[str | None, ...]]
    reason: str | None = None

    @property
    def driver_relation(self) -> str:
        """Return the relation whose rows start the chain."""
        return str(self.rule.body[self.driver].relation)

    @property
    def driver_binds(self) -> tuple[str | None, ...]:
        """Return a variable, or None, for each column of the driver."""
        return self.binds[self.driver]

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Return the lookups, without the filters between them."""
        return tuple(s for s in self.steps if isinstance(s, Lookup))
