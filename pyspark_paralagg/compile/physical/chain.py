"""What ``binarize`` makes of a rule: a linear chain of probes and filters, before indexes and places are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pyspark_paralagg.plan.plan import Filter
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Rule


@dataclass(frozen=True)
class Lookup:
    """Body atom ``atom`` looked up by ``keys``: pairs of its column and an expression over what is bound before."""

    atom: int
    keys: tuple[tuple[int, Expr], ...]
    version: Literal["full", "old"] = "full"


@dataclass(frozen=True)
class Chain:
    """One Δ variant of ``rule``, driven by body atom ``driver``.

    ``driver_binds`` and ``binds`` (by atom) name the variables that the chain still reads; ``reason`` says why atoms
    are joined in another order than they are written in.
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
        """The relation whose rows start the chain."""
        return str(self.rule.body[self.driver].relation)

    @property
    def driver_binds(self) -> tuple[str | None, ...]:
        """A variable for each of its columns, or None."""
        return self.binds[self.driver]

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """The probes, without the filters between them."""
        return tuple(s for s in self.steps if isinstance(s, Lookup))
