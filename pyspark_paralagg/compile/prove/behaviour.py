"""Define Behaviour, the result of the rule system in ``monotone``: how an expression changes as its inputs improve."""

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
"""How nulls change: ``const`` stays null or not null, ``up`` stays not null once it is not null."""

NOTHING = Range(1, 0)
"""The range of an expression that is always null or always an error."""
MOVE_OF: dict[str, Move] = {a.name: a.moves for a in AGGREGATORS.values()}
FLIPPED: dict[Move, Move] = {
    "up": "down", "down": "up", "bits_up": "bits_down", "bits_down": "bits_up", "const": "const", "unknown": "unknown",
    "divides": "unknown",
}  # fmt: skip


@dataclass(frozen=True)
class Behaviour:
    """The direction of an expression's values and nulls, and its possible values.

    ``is_nullable``: it may be null. ``range`` is None for types without numbers. For a boolean, ``move`` is ``up``
    if true stays true, ``down`` if false stays false, and ``const`` if both hold; ``keeps`` overrides it where nulls
    make a difference.
    """

    move: Move
    presence: Presence = "const"
    range: Range | None = None
    is_nullable: bool = False
    keeps: tuple[bool, bool] | None = None

    @property
    def is_const(self) -> bool:
        """Return whether no input of the expression changes."""
        return self.move == "const" and self.presence == "const"

    @property
    def keeps_true(self) -> bool:
        """Return whether true stays true (booleans)."""
        return self.keeps[0] if self.keeps else self.move in ("const", "up") and self.presence != "unknown"

    @property
    def keeps_false(self) -> bool:
        """Return whether false stays false (booleans)."""
        return self.keeps[1] if self.keeps else self.move in ("const", "down") and self.presence != "unknown"

    def improves_as(self, move: Move) -> bool:
        """Return whether the values never get worse for an aggregator that moves as ``move``."""
        return self.move in ("const", move) and self.presence != "unknown"


class System(Protocol):
    """The interface of the rule system (``monotone.Monotone``) for the rules of single functions."""

    facts: Facts
    overflows: bool

    def under(self, facts: Facts) -> System:
        """Return the system with other facts."""

    def behaviour(self, expr: Expr) -> Behaviour:
        """Return the behaviour of an argument."""


def all_of(moves: Iterable[Move]) -> Move:
    """Return the common direction of ``moves``; ``unknown`` if they differ."""
    moving = {m for m in moves if m != "const"}
    if not moving:
        return "const"
    return next(iter(moving)) if len(moving) == 1 else "unknown"


def presence_of(parts: Iterable[Presence]) -> Presence:
    """Return the presence of a function that is null if any argument is null."""
    presences = set(parts)
    return "unknown" if "unknown" in presences else "up" if "up" in presences else "const"


def as_number(move: Move) -> Move:
    """Return the direction as a number: ``unknown`` if only bits or divisors are known to move."""
    return "unknown" if move.startswith("bits") or move == "divides" else move


def truth_move(keeps_true: bool, keeps_false: bool) -> Move:  # noqa: FBT001 - as Behaviour.keeps has them
    """Return the move of a boolean that keeps true, false, or both."""
    if keeps_true and keeps_false:
        return "const"
    return "up" if keeps_true else "down" if keeps_false else "unknown"
