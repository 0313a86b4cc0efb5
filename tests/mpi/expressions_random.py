"""Draw random SQL expressions over columns of every type of the engine, and rows of edge-case values."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

INF, NAN = float("inf"), float("nan")
_LONGS = [0, 1, -1, 2, 7, -7, 63, 64, 100, 2**31, -(2**31), 3_037_000_500, 2**53 + 1, 2**63 - 1, -(2**63), None]
_DOUBLES = [0.0, -0.0, 1.0, -1.5, 0.5, 2.5, 1e18, -1e19, 9.3e18, 5e-324, 1e308, NAN, INF, -INF, None]
_STRINGS = ["", "a", "ab", "b", "B", "12", " 12 ", "-7", "1e3", "true", "é", "日本", "x.y", "9223372036854775808", None]
_DATES = [date(1970, 1, 1), date(2020, 2, 29), date(1969, 12, 31), date(9000, 12, 31), None]
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "l": ("bigint", _LONGS),
    "l2": ("bigint", _LONGS),
    "i": ("int", [0, 1, -1, 5, 31, 2**31 - 1, -(2**31), None]),
    "h": ("smallint", [0, 1, -3, 2**15 - 1, -(2**15), None]),
    "b": ("tinyint", [0, 2, -1, 127, -128, None]),
    "d": ("double", _DOUBLES),
    "d2": ("double", _DOUBLES),
    "f": ("float", [0.0, 1.5, -2.25, 0.10000000149011612, NAN, INF, None]),
    "t": ("boolean", [True, False, None]),
    "t2": ("boolean", [True, False, None]),
    "s": ("string", _STRINGS),
    "s2": ("string", _STRINGS),
    "m": ("decimal(9,2)", [Decimal(x) for x in ("0.00", "1.25", "-3.50", "9999999.99", "-0.01", "0.05")] + [None]),
    "m2": ("decimal(5,1)", [Decimal(x) for x in ("0.0", "2.5", "-9999.9", "0.1", "3.0")] + [None]),
    "a": ("date", _DATES),
    "a2": ("date", _DATES),
}


def rows(count: int, seed: int) -> list[tuple[Any, ...]]:
    """Return rows of values of all columns, after a row number."""
    generator = random.Random(seed)  # noqa: S311 - reproducible
    return [(n, *(generator.choice(values) for _, values in COLUMNS.values())) for n in range(count)]


class Expressions:
    """A generator of SQL expressions; ``depth`` is the number of nested calls."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible

    def draw(self, depth: int = 3) -> str:
        """Return an expression of any type."""
        kinds = (self.whole, self.whole, self.fraction, self.decimal, self.truth, self.truth, self.text, self.day)
        return self._random.choice(kinds)(depth)

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _conditional(self, kind: Callable[[int], str], depth: int) -> str:
        """Return a conditional or comparing expression, which every type has."""
        first, second = kind(depth), kind(depth)
        return self._pick(
            f"if({self.truth(depth)}, {first}, {second})",
            f"case when {self.truth(depth)} then {first} when {self.truth(depth)} then {second} end",
            f"case when {self.truth(depth)} then {first} else {second} end",
            f"coalesce({first}, {second})",
            f"least({first}, {second})",
            f"greatest({first}, {second}, {kind(0)})",
        )

    def small(self) -> str:
        """Return an int, for positions and numbers of bits."""
        return self._pick("i", "h", "b", "1", "2", "-1", "0", "33", "70")

    def number(self, depth: int) -> str:
        """Return an expression of any numeric type."""
        return self._random.choice((self.whole, self.fraction, self.decimal))(depth)

    def whole(self, depth: int) -> str:
        """Return a whole number of any width."""
        if depth <= 0:
            return self._pick("l", "l2", "l", "i", "h", "b", "0", "1", "-3", "100L", "9223372036854775807L", "127Y")
        inner = depth - 1
        first, second = self.whole(inner), self.whole(inner)
        width = self._pick("bigint", "int", "smallint", "tinyint")
        return self._pick(
            f"({first} {self._pick('+', '-', '*', '%', 'div', '&', '|', '^')} {second})",
            f"({first} {self._pick('+', '-', '*')} {second})",
            f"pmod({first}, {second})",
            f"{self._pick('abs', '-', '~')}({first})",
            f"{self._pick('shiftleft', 'shiftright', 'shiftrightunsigned')}({self._pick('l', 'i')}, {self.small()})",
            f"cast({self.number(inner)} as {width})",
            f"cast({self._pick(self.truth(inner), 's', 's2')} as {width})",
            f"length({self.text(inner)})",
            f"datediff({self.day(0)}, {self.day(0)})",
            f"{self._pick('floor', 'ceil')}({self._pick('d', 'd2', 'f', 'l')})",
            self._conditional(self.whole, inner),
        )

    def fraction(self, depth: int) -> str:
        """Return a double or a float."""
        if depth <= 0:
            return self._pick("d", "d2", "f", "0.0D", "1.5D", "-2.0D", "cast(0.1 as float)", "cast('NaN' as double)")
        inner = depth - 1
        first, second = self.fraction(inner), self.fraction(inner)
        return self._pick(
            f"({first} {self._pick('+', '-', '*', '/', '%')} {second})",
            f"({self.whole(inner)} {self._pick('/', '*', '+')} {second})",
            f"pmod({first}, {second})",
            f"{self._pick('abs', '-')}({first})",
            f"nanvl({first}, {second})",
            f"cast({self.number(inner)} as {self._pick('double', 'float')})",
            f"cast({self._pick(self.truth(0), 's', 's2')} as {self._pick('double', 'float')})",
            f"{self._pick('sqrt', 'exp', 'ln', 'log10', 'log2', 'log1p')}({self._pick('d', 'f', 'i')})",
            f"pow({self._pick('d', 'i')}, {self._pick('d2', '2', '0.5D')})",
            self._conditional(self.fraction, inner),
        )

    def decimal(self, depth: int) -> str:
        """Return a decimal."""
        if depth <= 0:
            return self._pick("m", "m2", "m", "1.25", "0.1", "-3.0")
        inner = depth - 1
        return self._pick(
            f"({self.decimal(inner)} {self._pick('+', '-', '*', '%')} {self.decimal(0)})",
            f"(m {self._pick('+', '-', '*')} m2)",
            f"{self._pick('abs', '-')}({self.decimal(inner)})",
            f"cast({self._pick('m', 'm2', 'i', 'b', 'l', 't')} as decimal({self._pick('9,2', '4,1', '6,0')}))",
            self._conditional(self.decimal, min(inner, 1)),
        )

    def truth(self, depth: int) -> str:
        """Return a condition."""
        if depth <= 0:
            return self._pick("t", "t2", "true", "l > 0", "d < 1", "s = 'a'", "l2 is null")
        inner = depth - 1
        kind = self._random.choice(
            (self.whole, self.fraction, self.decimal, self.text, self.day, self.truth, self.number)
        )
        first, second, third = kind(inner), kind(inner), kind(0)
        return self._pick(
            f"({first} {self._pick('=', '<', '<=', '>', '>=', '<>', '<=>')} {second})",
            f"({first} {self._pick('=', '<', '<=', '>', '>=', '<=>')} {third})",
            f"({self.truth(inner)} {self._pick('and', 'or')} {self.truth(inner)})",
            f"(not {self.truth(inner)})",
            f"({first} is {self._pick('', 'not ')}null)",
            f"isnan({self.fraction(inner)})",
            f"({first} in ({second}, {third}))",
            f"({self._pick('l', 'i')} in (0, 1, null))",
            f"{self._pick('contains', 'startswith', 'endswith')}({self.text(inner)}, {self.text(0)})",
            f"({self.text(0)} rlike '{self._pick('a', '^a.*$', '[0-9]+', '^(?:b|B)$')}')",
            f"cast({self._pick('l', 'd', 'm', 'i')} as boolean)",
            self._conditional(self.truth, inner),
        )

    def text(self, depth: int) -> str:
        """Return a string."""
        if depth <= 0:
            return self._pick("s", "s2", "s", "'a'", "''", "'é'")
        inner = depth - 1
        return self._pick(
            f"concat({self.text(inner)}, {self.text(0)})",
            f"substring({self.text(inner)}, {self.small()}, {self.small()})",
            f"cast({self._pick('l', 'i', 'b', 't', 'm', 'm2', 'a')} as string)",
            self._conditional(self.text, min(inner, 1)),
        )

    def day(self, depth: int) -> str:
        """Return a date."""
        if depth <= 0:
            return self._pick("a", "a2", "date'2021-03-04'")
        return self._pick(
            f"{self._pick('date_add', 'date_sub')}({self.day(0)}, {self._pick('b', 'h', '1', '-400')})",
            self._conditional(self.day, min(depth - 1, 1)),
        )
