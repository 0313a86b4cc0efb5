"""Encode claims about bits for z3: integers are 64-bit words. Slower than ``to_z3``, so used for bit claims only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.prove.to_z3 import Encoder, Term
from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.expr import Call, Expr, Lit, walk
from pyspark_paralagg.program.functions.value_range import Range

if TYPE_CHECKING:
    from pyspark_paralagg.compile.prove.to_z3 import Z3

_BITWISE = ("BitwiseOr", "BitwiseAnd", "BitwiseXor", "BitwiseNot", "ShiftLeft", "ShiftRight", "ShiftRightUnsigned")
_WIDTH = 64
_WORDS = Range(-(1 << _WIDTH - 1), (1 << _WIDTH - 1) - 1)


def is_about_bits(exprs: tuple[Expr, ...], aggregators: tuple[str, ...]) -> bool:
    """Return whether a claim needs bit vectors."""
    has_calls = any(isinstance(e, Call) and e.fn in _BITWISE for x in exprs for e in walk(x))
    return has_calls or any(a.startswith("bit_") for a in aggregators)


class BitEncoder(Encoder):
    """An encoder with 64-bit words for all integers: sign extension keeps bits and order of narrower ones."""

    def sort(self, type_: str) -> Z3:
        """Return a 64-bit vector for integers, the sort of ``Encoder`` for other types."""
        return self.z3.BitVecSort(_WIDTH, self.ctx) if is_integral(type_) else super().sort(type_)

    def within(self, term: Term, range_: Range) -> list[Z3]:
        """Return that ``term`` lies in ``range_``; bounds outside of 64 bits are dropped."""
        if self.z3.is_bv(term.value):
            low = range_.low if range_.low in _WORDS else -math.inf
            range_ = Range(low, range_.high if range_.high in _WORDS else math.inf)
        return super().within(term, range_)

    def _literal(self, lit: Lit) -> Term:
        if is_integral(lit.type) and isinstance(lit.value, int):
            return Term(self.z3.BitVecVal(lit.value, _WIDTH, self.ctx), self.truth(value=False))
        return super()._literal(lit)

    def _number(self, value: Any, like: Z3) -> Z3:  # noqa: ANN401 - a number of any type
        if self.z3.is_bv(like):
            return self.z3.BitVecVal(int(value), _WIDTH, self.ctx)
        return super()._number(value, like)

    def _arithmetic(self, expr: Call, args: list[Term], null: Z3) -> Term | None:
        words = [is_integral(e.type) for e in (expr, *expr.args)]
        if not all(words):  # nothing is known of conversions between words and other numbers
            return None if any(words) else super()._arithmetic(expr, args, null)
        value = self._word(expr, args, null)
        if value is None:
            return None
        if expr.type == "bigint" or expr.fn.startswith(("Bitwise", "Shift")):
            return Term(value, null)
        return self._fitted(expr, value, null) if self.facts.setting.ansi else None

    def _word(self, expr: Call, args: list[Term], null: Z3) -> Z3 | None:  # noqa: C901, PLR0911 - a function a line
        z3, (a, *rest) = self.z3, [x.value for x in args]
        b: Z3 = rest[0] if rest else None
        match expr.fn:
            case "BitwiseOr":
                return a | b
            case "BitwiseAnd":
                return a & b
            case "BitwiseXor":
                return a ^ b
            case "BitwiseNot":
                return ~a
            case "ShiftLeft" if expr.type == "bigint":
                return a << (b & (_WIDTH - 1))
            case "ShiftRight" if expr.type == "bigint":
                return a >> (b & (_WIDTH - 1))
            case "Add" if self.facts.setting.ansi:
                self._never_fails(z3.And(z3.BVAddNoOverflow(a, b, True), z3.BVAddNoUnderflow(a, b)), null)  # noqa: FBT003 - z3's own
                return a + b
            case "Subtract" if self.facts.setting.ansi:
                self._never_fails(z3.And(z3.BVSubNoOverflow(a, b), z3.BVSubNoUnderflow(a, b, True)), null)  # noqa: FBT003 - z3's own
                return a - b
            case "Add":
                return a + b if expr.type == "bigint" else None
            case "Subtract":
                return a - b if expr.type == "bigint" else None
            case "Cast":
                return a
            case _:
                return None

    def _as(self, term: Term, type_: str) -> Term:  # noqa: ARG002 - words stay words; casts to other sorts are unsupported
        return term
