"""Fold a flat list of operands and operators into one term, with Soufflé's operator precedence.

1 + 2 * 3 ^ 2      ->  1 + (2 * (3 ^ 2))
- x ^ 2            ->  -(x ^ 2)
a - b - c          ->  (a - b) - c
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lark import Token

from pyspark_paralagg.datalog.parse.leaves import number
from pyspark_paralagg.datalog.parse.problems import Problem, between, place
from pyspark_paralagg.datalog.parse.syntax import Apply, Number, Term

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEVELS = (
    ("lor",), ("lxor",), ("land",), ("bor",), ("bxor",), ("band",), ("bshl", "bshr", "bshru"),
    ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
PREFIX = len(_LEVELS)  # `-`, `bnot`, `lnot` bind tighter than all of these, and looser than `^`
POWER = PREFIX + 1
INFIX = {"^": POWER, **{sign: level for level, signs in enumerate(_LEVELS) for sign in signs}}
PREFIXES = {"-": "neg", "bnot": "bnot", "lnot": "lnot"}

_MAX_PARTS = 400  # later passes recurse over the term
_MAX_PREFIXES = 100


def fold(items: Sequence[Token | Term]) -> Term:
    """Return the term of ``items``: operands, numbers as tokens, and tokens of type INFIX and PREFIX."""
    prefixes = sum(isinstance(i, Token) and i.type == "PREFIX" for i in items)
    if len(items) > _MAX_PARTS or prefixes > _MAX_PREFIXES:
        span = place(items[0]) if isinstance(items[0], Token) else items[0].span
        message = f"an expression has more than {_MAX_PARTS} parts, or {_MAX_PREFIXES} signs before values"
        raise Problem(message, span, "compute parts of it in separate rules")
    return _Folder(items).term(0)


class _Folder:
    def __init__(self, items: Sequence[Token | Term]) -> None:
        self._items = items
        self._next = 0

    def term(self, min_level: int) -> Term:
        """Parse a term from the current position, up to the first operator below ``min_level``."""
        left = self._operand()
        while self._next < len(self._items):
            operator = str(self._items[self._next])
            level = INFIX[operator]
            if level < min_level:
                break
            self._next += 1
            right = self.term(level if level == POWER else level + 1)
            left = Apply(operator, (left, right), between(left, right))
        return left

    def _operand(self) -> Term:
        item = self._items[self._next]
        self._next += 1
        if not isinstance(item, Token):
            return item
        if item.type == "NUMBER":
            return number(item)
        following = self._items[self._next]
        operand = self.term(PREFIX)
        span = between(item, operand)
        if item == "-" and isinstance(following, Token) and isinstance(operand, Number) and operand.value >= 0:
            return Number(-operand.value, operand.is_unsigned, span)
        return Apply(PREFIXES[str(item)], (operand,), span)
