"""How an expression moves when what it reads improves: the rule system behind the class *lattice* (design section 3).

While a lattice runs, a ``min`` only goes down and a ``max`` only goes up. From that each expression gets a direction:

    d + w        down, if d goes down and w stays        least(c, w)      up, if c goes up
    10 - d       up                                      c * p            up, if p >= 0; unknown if nobody says so
    d < 100      up (false to true)                      d % 7            unknown
    cat("x", s)  as s moves                              cat(s, "x")      unknown

A head's column is proved monotone if its expression moves in the direction of its own aggregator, a filter if it moves
from false to true. ``bits_up`` and ``bits_down`` are the directions of ``bit_or`` and ``bit_and``, ``divides`` that of
``gcd``: each value divides the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.signs import NOT_NEGATIVE, NOT_POSITIVE, Signs, signs
from pyspark_paralagg.program.aggregators import AGGREGATORS, Move, is_integral, is_numeric
from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit

if TYPE_CHECKING:
    from collections.abc import Mapping

MOVE_OF: dict[str, Move] = {a.name: a.moves for a in AGGREGATORS.values()}
_FLIPPED: dict[Move, Move] = {
    "up": "down", "down": "up", "bits_up": "bits_down", "bits_down": "bits_up", "const": "const", "unknown": "unknown",
    "divides": "unknown",
}  # fmt: skip
INCREASING = ("Sqrt", "Exp", "Expm1", "Log", "Log10", "Log2", "Log1p", "Cbrt", "Floor", "Ceil", "Atan", "Signum")
_BITWISE = ("BitwiseOr", "BitwiseAnd", "ShiftLeft", "ShiftRight", "ShiftRightUnsigned")
_TIMES = ("date", "timestamp", "timestamp_ntz")


@dataclass
class Monotone:
    """``moves`` and ``facts`` of a rule's variables; ``notes`` collects what a proof rests on."""

    moves: Mapping[str, Move]
    facts: Mapping[str, Signs]
    notes: list[str] = field(default_factory=list)

    def move(self, expr: Expr) -> Move:
        """How ``expr`` moves while its variables move as they do."""
        if isinstance(expr, Col):
            return self.moves.get(expr.name, "const")
        if isinstance(expr, Lit):
            return "const"
        parts = [self.move(a) for a in expr.args]
        if all(p == "const" for p in parts):
            return "const"
        return self._moving(expr, parts)

    def _moving(self, expr: Call, parts: list[Move]) -> Move:  # noqa: C901, PLR0911, PLR0912 - one rule of the system a line
        match expr.fn:
            case "Multiply" | "UnaryMinus" | "Abs" | "Cast" if "divides" in parts:
                is_whole = all(is_integral(e.type) for e in (expr, *expr.args))
                return "divides" if is_whole and set(parts) <= {"const", "divides"} else "unknown"
            case "EqualTo" if self._is_remainder(expr):
                return "up"
            case "Add":
                return _numeric(_both(*parts)) if is_numeric(expr.type) else "unknown"
            case "Subtract":
                return _numeric(_both(parts[0], _FLIPPED[parts[1]])) if is_numeric(expr.type) else "unknown"
            case "UnaryMinus":
                return _numeric(_FLIPPED[parts[0]])
            case "Multiply":
                return self._product(expr, parts)
            case "Divide" | "IntegralDivide":
                return self._quotient(expr, parts)
            case "Least" | "Greatest":
                return self._extreme(expr, parts)
            case "And" | "Or":
                return _both(*parts)
            case "Not" | "BitwiseNot":
                return _FLIPPED[parts[0]]
            case "LessThan" | "LessThanOrEqual":
                return _both(_FLIPPED[_numeric(parts[0])], _numeric(parts[1]))
            case "GreaterThan" | "GreaterThanOrEqual":
                return _both(_numeric(parts[0]), _FLIPPED[_numeric(parts[1])])
            case "IsNotNull" | "IsNull":
                # A value that is there stays there, save under min_by, where a better row may carry a null.
                known = isinstance(expr.args[0], Col) and parts[0] != "unknown"
                return ("up" if expr.fn == "IsNotNull" else "down") if known else "unknown"
            case "Cast":
                return parts[0] if _keeps_order(expr.args[0].type, expr.type) else "unknown"
            case "Concat":
                # By bytes: after the same beginning the rest decides; before the same end it does not ("a" and "ab").
                return parts[-1] if expr.type == "string" and set(parts[:-1]) <= {"const"} else "unknown"
            case "Coalesce":
                return parts[0] if not may_be_null(expr.args[0]) else "unknown"
            case "If" | "CaseWhen":
                return self._choice(expr, parts)
            case "EqualTo":
                return _bit_test(expr, parts)
            case fn if fn in _BITWISE:
                return _bitwise(fn, parts)
            case fn if fn in INCREASING and len(parts) == 1:
                return _numeric(parts[0])
            case _:
                return "unknown"

    def _is_remainder(self, expr: Call) -> bool:
        """``n % g = 0``: once a gcd divides a number, it does for ever."""
        rest, zero = expr.args
        return (
            isinstance(rest, Call)
            and rest.fn == "Remainder"
            and [self.move(a) for a in rest.args] == ["const", "divides"]
            and isinstance(zero, Lit)
            and zero.value == 0
        )

    def _product(self, expr: Call, parts: list[Move]) -> Move:
        left, right = expr.args
        found = [signs(a, self.facts) for a in (left, right)]
        if "const" in parts:
            n = parts.index("const")
            return _scaled(_numeric(parts[1 - n]), found[n])
        if parts[0] == parts[1] in ("up", "down"):
            if all(s <= NOT_NEGATIVE for s in found):
                return parts[0]
            if all(s <= NOT_POSITIVE for s in found):
                return _FLIPPED[parts[0]]
        return "unknown"

    def _quotient(self, expr: Call, parts: list[Move]) -> Move:
        over, under = (signs(a, self.facts) for a in expr.args)
        if parts[1] == "const":
            return _scaled(_numeric(parts[0]), under)
        if parts[0] == "const" and (under <= NOT_NEGATIVE or under <= NOT_POSITIVE):
            return _scaled(_FLIPPED[_numeric(parts[1])], over)
        return "unknown"

    def _extreme(self, expr: Call, parts: list[Move]) -> Move:
        found = _numeric(_both(*parts))
        skips_worst = (expr.fn == "Least") == (found == "down")
        if found != "unknown" and not skips_worst:
            # Spark's least skips nulls: least(null, 5) is 5 and least(3, 5) is 3, a step down under max.
            for a, part in zip(expr.args, parts, strict=True):
                if part != "const" and isinstance(a, Col) and may_be_null(a):
                    self.notes.append(f"{expr.fn.lower()} skips nulls: proved for {a.name} without nulls")
        return found

    def _choice(self, expr: Call, parts: list[Move]) -> Move:
        conditions, values = branches(expr)
        moving = [c for c in conditions if self.move(c) != "const"]
        if not moving:
            return _both(*(self.move(v) for v in values))
        if expr.fn == "If" and all(isinstance(v, Lit) for v in values):
            yes, no = (v.value for v in values if isinstance(v, Lit))
            if isinstance(yes, int | float) and isinstance(no, int | float) and not may_be_null(conditions[0]):
                return parts[0] if yes >= no else _FLIPPED[parts[0]]
        return "unknown"


def branches(expr: Call) -> tuple[list[Expr], list[Expr]]:
    """Conditions and values of an ``If`` or ``CaseWhen``; without ELSE the value null is left out."""
    args = list(expr.args)
    if expr.fn == "If":
        return args[:1], args[1:]
    pairs = len(args) // 2 * 2
    return args[0:pairs:2], args[1:pairs:2] + args[pairs:]


def _both(*moves: Move) -> Move:
    """What moves with all of ``moves``."""
    moving = {m for m in moves if m != "const"}
    if not moving:
        return "const"
    return next(iter(moving)) if len(moving) == 1 else "unknown"


def _numeric(move: Move) -> Move:
    """A number of which only the bits are known to move may go anywhere."""
    return "unknown" if move.startswith("bits") or move == "divides" else move


def _scaled(move: Move, factor: Signs) -> Move:
    if factor <= NOT_NEGATIVE:
        return move
    return _FLIPPED[move] if factor <= NOT_POSITIVE else "unknown"


def _keeps_order(source: str, target: str) -> bool:
    return (is_numeric(source) and is_numeric(target)) or (source in _TIMES and target in _TIMES) or source == target


def _bitwise(fn: str, parts: list[Move]) -> Move:
    if fn.startswith("Shift"):
        return parts[0] if parts[1] == "const" and parts[0].startswith("bits") else "unknown"
    found = _both(*parts)
    return found if found.startswith("bits") else "unknown"


def _bit_test(expr: Call, parts: list[Move]) -> Move:
    """``mask & 4 = 0`` goes from true to false while bits come in, ``mask & 4 = 4`` the other way."""
    left, right = expr.args
    move = _both(*parts)
    if not move.startswith("bits") or parts[1] != "const":
        return "unknown"
    mirrored: Move = "up" if move == "bits_up" else "down"
    if isinstance(right, Lit) and right.value == 0:
        return _FLIPPED[mirrored]
    if isinstance(left, Call) and left.fn == "BitwiseAnd" and right in left.args:
        return mirrored
    return "unknown"
