"""Random SQL expressions of a type, over the whole table of functions."""
# ruff: noqa: E501  (tables of values and functions)

from __future__ import annotations

from typing import TYPE_CHECKING

from settings import TYPES, column

if TYPE_CHECKING:
    import random

INTEGERS = ("tinyint", "smallint", "int", "bigint")
DECIMALS = ("decimal(10,2)", "decimal(18,6)")
NUMBERS = (*INTEGERS, "float", "double", *DECIMALS)
TIMES = ("date", "timestamp", "timestamp_ntz")
_LITERALS = {
    "tinyint": ("2Y", "-1Y", "0Y"), "smallint": ("3S", "-2S"), "int": ("1", "-1", "0", "2", "7"),
    "bigint": ("1L", "-2L", "0L", "4L"), "float": ("0.5F", "-1F", "0F"), "double": ("0.5D", "-2D", "0D", "1D", "1e17D"),
    "decimal(10,2)": ("1.50", "-0.25"), "decimal(18,6)": ("cast(0.1 as decimal(18,6))",), "string": ("'a'", "''", "'a b'", "'b''c'"),
    "date": ("date'2024-02-01'",), "timestamp": ("timestamp'2024-03-10 12:00:00'",),
    "timestamp_ntz": ("timestamp_ntz'2024-03-10 12:00:00'",), "interval day to second": ("interval 1 day", "interval 3 hour"),
    "boolean": ("true", "false"),
}  # fmt: skip
_GROWING = ("sqrt", "exp", "expm1", "ln", "log10", "log2", "log1p", "atan", "asin", "signum", "radians", "degrees", "cbrt",
            "sinh", "tanh", "acosh", "asinh", "sin")  # fmt: skip


_UNITS = ("MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_PADS = ("'0'", "' '")
ESCAPE = " escape '/'"


class Generator:
    """Makes expressions; ``moving`` is the type of the one column that improves."""

    def __init__(self, rng: random.Random, moving: str) -> None:
        self._rng = rng
        self._moving = moving

    def expression(self, type_: str, depth: int) -> str:
        """A random expression of ``type_``, at most ``depth`` calls deep."""
        if depth == 0 or self._rng.random() < 0.1:
            return self._leaf(type_)
        made = self._rng.choice(self._ways(type_))(depth - 1)
        return f"cast({made} as {type_})" if type_ in NUMBERS else made

    def _leaf(self, type_: str) -> str:
        roll = self._rng.random()
        if type_ == self._moving and roll < 0.65:
            return column("v", type_)
        if roll < 0.35:
            return self._rng.choice(_LITERALS[type_])
        return column("w", type_)

    def _ways(self, type_: str) -> list:
        e, pick = self.expression, self._rng.choice

        def binary(sign: str):  # noqa: ANN202 - a maker of text
            return lambda d: f"({e(type_, d)} {sign} {e(type_, d)})"

        def call(fn: str, *types: str, extra: str = ""):  # noqa: ANN202 - a maker of text
            return lambda d: f"{fn}({', '.join(e(t, d) for t in types)}{extra})"

        def cast(*sources: str):  # noqa: ANN202 - a maker of text
            return lambda d: f"cast({e(pick(sources), d)} as {type_})"

        ways = [
            call("least", type_, type_), call("greatest", type_, type_), call("coalesce", type_, type_),
            lambda d: f"if({e('boolean', d)}, {e(type_, d)}, {e(type_, d)})",
            lambda d: f"named_struct('a', {e(type_, d)}, 'b', {e(type_, d)}).{pick('ab')}",
            lambda d: f"case when {e('boolean', d)} then {e(type_, d)} when {e('boolean', d)} then {e(type_, d)} end",
        ]  # fmt: skip
        if type_ in NUMBERS:
            ways += [binary(s) for s in "+-**"] + [binary("+")] * 2 + [cast(*NUMBERS)] * 2
            ways += [lambda d: f"(- {e(type_, d)})", call("abs", type_), cast("boolean"), binary("%")]
            ways += [lambda d: f"{pick(['round', 'bround', 'floor', 'ceil'])}({e(type_, d)}, {pick([-1, 0, 1])})"] * 2
        if type_ in ("double", "float"):
            ways += [lambda d: f"{pick(_GROWING)}({e('double', d)})"] * 3 + [
                binary("/"),
                call("pow", "double", extra=", 2"),
            ]
            ways += [call("nanvl", "double", "double")]
        if type_ in DECIMALS:
            ways += [binary("/"), call("floor", type_)]
        if type_ in INTEGERS:
            ways += [binary(s) for s in "&|^"] + [lambda d: f"(~ {e(type_, d)})"]
            ways += [lambda d: f"({e('bigint', d)} div {e('bigint', d)})", call("pmod", type_, type_)]
            ways += [lambda d: f"{pick(['floor', 'ceil'])}({e('double', d)})", call("length", "string")]
            ways += [
                call("datediff", "date", "date"),
                lambda d: f"year({e(pick(TIMES), d)})",
                call("unix_seconds", "timestamp"),
                lambda d: f"{pick(['hash', 'xxhash64'])}({e(pick(TYPES), d)})",
                lambda d: f"timestampdiff({pick(_UNITS)}, {e('timestamp', d)}, {e('timestamp', d)})",
                lambda d: f"{pick(['unix_micros', 'unix_millis'])}({e('timestamp', d)})",
                lambda d: f"{pick(['unix_date', 'quarter', 'month', 'dayofyear'])}({e('date', d)})",
            ]
        if type_ == "string":
            ways += [call("concat", "string", "string"), call("upper", "string"), cast("int", "boolean", "date")]
            ways += [call("concat_ws", "string", "string", "string"), cast("timestamp", "timestamp_ntz")]
            ways += [
                lambda d: f"substring({e('string', d)}, {pick([0, 1, 1, 2, -1])}, {pick([1, 2, e('int', d)])})",
                lambda d: f"{pick(['lpad', 'rpad'])}({e('string', d)}, {pick([1, 3])}, {pick(_PADS)})",
                lambda d: f"lpad(cast({e('int', d)} as string), {pick([1, 10])}, '0')",
            ]
        if type_ == "date":
            ways += [
                lambda d: (
                    f"{pick(['date_add', 'date_sub'])}({e('date', d)}, {pick([e('tinyint', d), '7', '-30', e('int', d)])})"
                )
            ] * 2
            ways += [lambda d: f"add_months({e('date', d)}, {pick(['1', '-1', '12', e('tinyint', d)])})"]
            ways += [
                cast("timestamp", "timestamp_ntz"),
                lambda d: f"({e('date', d)} + interval {pick(['1 month', '1 year', '3 days'])})",
                lambda d: f"next_day({e('date', d)}, 'MON')",
                call("last_day", "date"),
                lambda d: f"trunc({e('date', d)}, '{pick(['WEEK', 'MONTH', 'QUARTER', 'YEAR', 'DAY'])}')",
                call("date_from_unix_date", "int"),
                lambda d: f"({e('date', d)} + {pick(['make_ym_interval(0, ', 'make_dt_interval('])}{e('tinyint', d)}))",
            ] * 2
        if type_ in ("timestamp", "timestamp_ntz"):
            ways += [lambda d: f"({e(type_, d)} {pick('+-')} {e('interval day to second', d)})"] * 2
            ways += [cast(*TIMES), lambda d: f"({e(type_, d)} + interval 1 month)"]
            ways += [
                lambda d: f"timestampadd({pick(_UNITS)}, {pick(['1', '-30', e('tinyint', d)])}, {e(type_, d)})",
                lambda d: f"({e(type_, d)} + make_ym_interval(0, {e('tinyint', d)}))",
            ]
        if type_ == "timestamp":
            ways += [lambda d: f"date_trunc('{pick(_UNITS)}', {e('timestamp', d)})"] * 2
            ways += [
                lambda d: f"{pick(['timestamp_micros', 'timestamp_millis', 'timestamp_seconds'])}({e('bigint', d)})"
            ]
            ways += [call("timestamp_seconds", "double")]
        if type_ == "interval day to second":
            ways += [
                binary("+"),
                binary("-"),
                lambda d: f"(- {e(type_, d)})",
                lambda d: f"({e('timestamp', d)} - {e('timestamp', d)})",
                lambda d: f"({e('timestamp_ntz', d)} - {e('timestamp_ntz', d)})",
                lambda d: f"cast({e('date', d)} - {e('date', d)} as interval day to second)",
                lambda d: f"({e(type_, d)} {pick('**/')} {e(pick(['tinyint', 'double', 'decimal(10,2)']), d)})",
                lambda d: f"make_dt_interval({e('int', d)}, {e('tinyint', d)})",
                lambda d: f"cast(cast({e(type_, d)} as interval {pick(['day', 'hour', 'day to minute'])}) as {type_})",
            ]
        if type_ == "boolean":
            ways = [self._comparison] * 6 + [binary("and"), binary("or"), lambda d: f"(not {e('boolean', d)})"]
            ways += [
                lambda d: f"({e(pick(TYPES), d)} is {pick(['', 'not '])}null)",
                lambda d: f"isnan({e('double', d)})",
            ]
            ways += [
                self._same,
                call("coalesce", "boolean", "boolean"),
            ]
            ways += [lambda d: f"cast({e(pick(NUMBERS), d)} as boolean)", lambda d: f"({e('int', d)} in (1, 2, null))"]
            ways += [lambda d: f"if({e('boolean', d)}, {e('boolean', d)}, {e('boolean', d)})"]
            ways += [lambda d: f"({e('string', d)} like 'a/%'{pick(['', ESCAPE])})"]
        return ways

    def _same(self, depth: int) -> str:
        type_ = self._rng.choice(TYPES)
        return f"({self.expression(type_, depth)} <=> {self.expression(type_, depth)})"

    def _comparison(self, depth: int) -> str:
        type_ = self._rng.choice([self._moving, *TYPES])
        sign = self._rng.choice(["<", "<=", ">", ">=", "="])
        return f"({self.expression(type_, depth)} {sign} {self.expression(type_, depth)})"
