"""How an expression behaves while what it reads improves: the answer of the rule system in ``compile.monotone``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from pyspark_paralagg.program.aggregators import AGGREGATORS, Move
from pyspark_paralagg.program.functions.value_range import Range

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_paralagg.compile.prove.facts import Facts
    from pyspark_paralagg.program.expr import Expr

Presence = Literal["const", "up", "unknown"]
"""Where nulls go: ``const`` stays null or a value, ``up``: what has a value keeps one."""

NOTHING = Range(1, 0)
"""The range of what is always null, or always an error."""
MOVE_OF: dict[str, Move] = {a.name: a.moves for a in AGGREGATORS.values()}
FLIPPED: dict[Move, Move] = {
    "up": "down", "down": "up", "bits_up": "bits_down", "bits_down": "bits_up", "const": "const", "unknown": "unknown",
    "divides": "unknown",
}  # fmt: skip


@dataclass(frozen=True)
class Behaviour:
    """How an expression behaves: where its values go, where its nulls go, and which values it can have.

    ``is_nullable``: it may be null. ``range`` is None for types without numbers. Of a truth value, ``move`` is ``up``
    where true stays true, ``down`` where false stays false, and ``const`` where both do; ``keeps`` says so where nulls
    make a difference.
    """

    move: Move
    presence: Presence = "const"
    range: Range | None = None
    is_nullable: bool = False
    keeps: tuple[bool, bool] | None = None

    @property
    def is_const(self) -> bool:
        """Whether nothing that the expression reads changes."""
        return self.move == "const" and self.presence == "const"

    @property
    def keeps_true(self) -> bool:
        """Of a truth value: whether true stays true."""
        return self.keeps[0] if self.keeps else self.move in ("const", "up") and self.presence != "unknown"

    @property
    def keeps_false(self) -> bool:
        """Of a truth value: whether false stays false."""
        return self.keeps[1] if self.keeps else self.move in ("const", "down") and self.presence != "unknown"

    def improves_as(self, move: Move) -> bool:
        """Whether an aggregator whose values go that way never gets a worse one."""
        return self.move in ("const", move) and self.presence != "unknown"


class System(Protocol):
    """The rule system (``monotone.Monotone``) as the rules for single functions use it."""

    facts: Facts
    overflows: bool

    def under(self, facts: Facts) -> System:
        """Return the system with other facts."""

    def behaviour(self, expr: Expr) -> Behaviour:
        """Return the behaviour of an argument."""


def all_of(moves: Iterable[Move]) -> Move:
    """Return what moves with all of ``moves``."""
    moving = {m for m in moves if m != "const"}
    if not moving:
        return "const"
    return next(iter(moving)) if len(moving) == 1 else "unknown"


def presence_of(parts: Iterable[Presence]) -> Presence:
    """Return where the nulls of a function go that is null where an argument is."""
    found = set(parts)
    return "unknown" if "unknown" in found else "up" if "up" in found else "const"


def as_number(move: Move) -> Move:
    """Return where a number goes of which only the bits are known to move: anywhere."""
    return "unknown" if move.startswith("bits") or move == "divides" else move


def truth_move(keeps_true: bool, keeps_false: bool) -> Move:  # noqa: FBT001 - as Behaviour.keeps has them
    """Return the move of a truth value that keeps true, or false, once it is that."""
    if keeps_true and keeps_false:
        return "const"
    return "up" if keeps_true else "down" if keeps_false else "unknown"
