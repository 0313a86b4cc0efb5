"""Convert a value that the user gives to a constant of a column's type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.expr import Lit
from pyspark_paralagg.program.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def constants(given: Mapping[str, object], keys: Mapping[str, str], relation: str) -> tuple[Lit, ...]:
    """Return the given values of ``keys`` (name, Spark type); raise ``UsageError`` ``PARALAGG_WHY``.

    >>> constants({"NODE": 7}, {"node": "bigint"}, "dist")
    (Lit(value=7, type='bigint', handle=None),)
    """
    own = {name.lower() for name in keys}
    for name in given:
        if name.lower() not in own:
            raise _wrong_key(f"{relation!r} has no key {name!r}", name, relation, did_you_mean(name, list(keys)))
    values = {name.lower(): value for name, value in given.items()}
    for name in keys:
        if name.lower() not in values:
            hint = f"give all keys: ra.why(df, {', '.join(f'{n}=...' for n in keys)})"
            raise _wrong_key(f"the key {name!r} of {relation!r} is not given", name, relation, hint)
    return tuple(constant(values[name.lower()], type_, name, relation) for name, type_ in keys.items())


def _wrong_key(message: str, value: object, relation: str, hint: str) -> UsageError:
    return UsageError("PARALAGG_WHY", message, value=value, place=f"relation {relation}", hint=hint)


def shown(name: str, given: Mapping[str, object]) -> str:
    """Return the asked row as text."""
    return f"{name}({', '.join(f'{k}={v!r}' for k, v in given.items())})"


def constant(value: object, type_: str, column: str, relation: str) -> Lit:
    """Return ``value`` as a constant of the Spark type ``type_``; raise ``UsageError`` ``PARALAGG_WHY``.

    >>> constant(7, "bigint", "node", "dist")
    Lit(value=7, type='bigint', handle=None)
    >>> constant("2026-11-25", "date", "day", "dist")
    Lit(value='2026-11-25', type='date', handle=None)
    """
    if value is None:
        raise _wrong(value, type_, column, relation, "rows with a null key have no proof")
    read = next((read for types, read in _READERS if type_.split("(", maxsplit=1)[0] in types), None)
    if read is None:
        raise _wrong(value, type_, column, relation, "keys of numbers, texts, booleans, dates and times can be asked")
    literal = read(value)
    if literal is None:
        raise _wrong(value, type_, column, relation, f"give a value of type {type_}")
    return Lit(literal, type_)


def _boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(value: object) -> int | None:
    text = str(value)
    return int(text) if not isinstance(value, bool) and text.removeprefix("-").isdigit() else None


def _float(value: object) -> float | None:
    return float(str(value)) if _is_number(value) else None


def _decimal(value: object) -> str | None:
    return str(value) if _is_number(value) else None


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(value: object) -> str | None:
    return str(value) if isinstance(value, str | dt.date) else None


_READERS: tuple[tuple[tuple[str, ...], Callable[[object], bool | int | float | str | None]], ...] = (
    (("boolean",), _boolean),
    (("tinyint", "smallint", "int", "bigint"), _integer),
    (("double", "float"), _float),
    (("decimal",), _decimal),
    (("string",), _string),
    (("date", "timestamp", "timestamp_ntz"), _time),
)


def _is_number(value: object) -> bool:
    if isinstance(value, bool):
        return False
    try:
        Decimal(str(value))
    except InvalidOperation:
        return False
    return True


def _wrong(value: object, type_: str, column: str, relation: str, hint: str) -> UsageError:
    message = f"{value!r} is no value of the key {column!r}, which is {type_}"
    return UsageError("PARALAGG_WHY", message, value=value, place=f"relation {relation}", hint=hint)
