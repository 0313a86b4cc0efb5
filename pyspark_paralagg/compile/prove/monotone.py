"""Compute how an expression moves as its inputs improve: the rule system for the class *lattice*.

In a lattice a ``min`` only goes down, a ``max`` only goes up, and a null only becomes a value. From that each
expression gets a direction, for all values of Spark's types (docs/architecture.md, "The proof"):

    d + w        down, if d goes down and w stays        least(c, w)      up, if c goes up and is never null
    10 - d       up                                      c * p            up, if p >= 0 and nothing is infinite
    d < 100      up (false to true)                      d % 7            unknown
    cat("x", s)  like s                                  cat(s, "x")      unknown

A head's column is proved monotone if its expression moves in the direction of its aggregator and no value becomes
null; a filter, if true stays true. ``bits_up`` and ``bits_down`` are the directions of ``bit_or`` and ``bit_and``,
``divides`` that of ``gcd``: each value divides the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove import choices, texts, truths
from pyspark_paralagg.compile.prove.behaviour import (
    FLIPPED,
    MOVE_OF,
    NOTHING,
    Behaviour,
    all_of,
    as_number,
    presence_of,
)
from pyspark_paralagg.compile.prove.bit_moves import bit_move
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit
from pyspark_paralagg.program.functions import Shape, shape_of
from pyspark_paralagg.program.functions.arithmetic import to_number
from pyspark_paralagg.program.functions.value_range import Range, hull, type_range

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_paralagg.compile.prove.behaviour import Presence, System
    from pyspark_paralagg.compile.prove.facts import Facts
    from pyspark_paralagg.program.aggregators import Move

CHECKABLE = ("Add", "Subtract", "Multiply", "UnaryMinus", "Abs", "Cast")
"""Functions whose overflow the engines can turn into an error when ANSI mode is off."""

_RULES: dict[str, Callable[[System, Call], Behaviour | None]] = {**truths.RULES, **choices.RULES, **texts.RULES}
"""Functions with a rule of their own instead of ``shape_of`` and null propagation."""


@dataclass
class Monotone:
    """The rule system for the variables of one rule.

    ``moves`` are the variables of the recursion; those in ``loses`` may become null. ``overflows`` is set if a result
    relies on overflow being an error that the session would not raise.
    """

    moves: Mapping[str, Move]
    facts: Facts
    loses: frozenset[str] = frozenset()
    overflows: bool = field(default=False)

    def under(self, facts: Facts) -> Monotone:
        """Return the system with other facts, for a branch of a condition."""
        return replace(self, facts=facts, overflows=False)

    def move(self, expr: Expr) -> Move:
        """Return how ``expr`` moves; ``unknown`` if a value may become null."""
        behaviour = self.behaviour(expr)
        return "unknown" if behaviour.presence == "unknown" else behaviour.move

    def behaviour(self, expr: Expr) -> Behaviour:
        """Return the behaviour of ``expr`` as its variables move."""
        if isinstance(expr, Lit):
            return _literal(expr)
        if isinstance(expr, Col):
            return self._column(expr)
        special = _RULES.get(expr.fn)
        behaviour = special(self, expr) if special is not None else None
        if behaviour is not None:
            return behaviour
        args = [self.behaviour(a) for a in expr.args]
        shape = shape_of(expr, tuple(a.range for a in args), self.facts.setting)
        strict = self._strict(expr, args, shape)
        if strict.is_const:
            return strict
        bits = bit_move(expr, [a.move for a in args])
        return strict if bits is None else Behaviour(bits, strict.presence, strict.range, strict.is_nullable)

    def _column(self, col: Col) -> Behaviour:
        move = self.moves.get(col.name, "const")
        is_nullable = col.nullable and col.name not in self.facts.present
        presence: Presence = "const"
        if is_nullable and col.name in self.moves:
            presence = "unknown" if col.name in self.loses else "up"
        return Behaviour(move, presence, self.facts.range_of(col), is_nullable)

    def _strict(self, expr: Call, args: list[Behaviour], shape: Shape) -> Behaviour:
        """Return the behaviour of a function that is null if any argument is null."""
        if expr.fn == "Cast" and args[0].range is not None and args[0].range.is_empty:
            return args[0]
        moves = [_argument_move(a.move, d) for a, d in zip(args, shape.directions, strict=True)]
        move = all_of(moves)
        is_moving = any(not a.is_const for a in args)
        range_ = shape.range
        if shape.wraps:
            if not is_moving:
                range_ = type_range(expr.type)
            elif expr.fn in CHECKABLE:
                self.overflows = True
            else:
                move, range_ = "unknown", type_range(expr.type)
        presences = [a.presence for a in args]
        for a, when in zip(args, shape.nulls, strict=True):
            if not a.is_const and when != "never":
                presences.append("up" if when == "low" and a.move == "up" else "unknown")
        is_square = expr.fn == "Multiply" and expr.args[0] == expr.args[1] and (is_moving or not shape.wraps)
        if is_square and range_ is not None:  # never below 0, and no product of 0 and infinity
            factor = args[0].range
            range_ = Range(max(range_.low, 0), max(range_.high, 0), factor is None or factor.has_nan)
        nullable = any(a.is_nullable for a in args) or any(w != "never" for w in shape.nulls)
        return Behaviour(move, presence_of(presences), range_, nullable and expr.nullable)


def _literal(lit: Lit) -> Behaviour:
    of_type = type_range(lit.type)
    if lit.value is None:
        return Behaviour("const", "const", NOTHING if of_type else None, is_nullable=True)
    if isinstance(lit.value, bool):
        return Behaviour("const", "const", Range(lit.value, lit.value))
    value = to_number(lit.value, lit.type)
    if of_type is None or value is None:
        return Behaviour("const", "const", of_type)
    return Behaviour("const", "const", hull([value]))


def range_of(expr: Expr, facts: Facts) -> Range | None:
    """Return the possible values of ``expr`` if it is not null; None for types without numbers."""
    return Monotone({}, facts).behaviour(expr).range


def _argument_move(move: Move, direction: str) -> Move:
    if move == "const" or direction == "none":
        return "const"
    move = as_number(move)
    return move if direction == "up" else FLIPPED[move] if direction == "down" else "unknown"


__all__ = ["CHECKABLE", "MOVE_OF", "Monotone", "range_of"]
