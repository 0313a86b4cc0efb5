"""Check arguments for a wrong type: not a Spark DataFrame, or a Column instead of a name.

The message names the type, and the hint shows the correct call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark_paralagg.errors import UsageError

_SHOWN_COLUMN = re.compile(r"Column<'(?P<text>.*)'>")
_CONVERTIBLE = ("pandas", "pyarrow", "list")
"""Types that ``spark.createDataFrame`` takes."""


def type_name(value: object) -> str:
    """Return the type name of ``value`` for messages, with the package of the type.

    >>> import decimal
    >>> type_name(7), type_name(decimal.Decimal(7))
    ('int', 'decimal.Decimal')
    """
    package = type(value).__module__.partition(".")[0]
    return type(value).__name__ if package == "builtins" else f"{package}.{type(value).__name__}"


def not_a_dataframe(argument: str, value: object, place: str, code: str = "PARALAGG_BAD_OPTION") -> UsageError:
    """Return the error for the argument ``what`` (``base``), whose ``value`` is not a Spark DataFrame."""
    name = type_name(value)
    hint = None
    if name.startswith(_CONVERTIBLE):
        hint = "convert it with spark.createDataFrame(...)"
    elif value is None:
        hint = "check that no return or select is missing"
    return UsageError(code, f"{argument} is a {name}, not a Spark DataFrame", value=value, place=place, hint=hint)


def check_dataframe(argument: str, value: object, place: str, code: str = "PARALAGG_BAD_OPTION") -> None:
    """Raise ``UsageError`` with this code unless ``value`` is a Spark DataFrame."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - this module loads without pyspark

    if not isinstance(value, DataFrame):
        raise not_a_dataframe(argument, value, place, code)


def check_type(argument: str, value: object, kind: type, expected: str) -> None:
    """Raise ``PARALAGG_BAD_OPTION`` unless ``value`` is a ``kind``; ``expected`` says what to pass instead."""
    if not isinstance(value, kind):
        raise wrong_type(argument, value, argument, f"pass {expected}")


def wrong_type(argument: str, value: object, place: str, hint: str) -> UsageError:
    """Return the error ``PARALAGG_BAD_OPTION`` that names the type of ``value``."""
    message = f"{argument} is a {type_name(value)}"
    return UsageError("PARALAGG_BAD_OPTION", message, value=value, place=place, hint=hint)


def not_a_name(argument: str, value: object, place: str, code: str) -> UsageError:
    """Return the error for a column of ``argument`` (``keys``) whose ``value`` is not a column name."""
    message = f"{argument} takes column names, not a {type_name(value)}"
    return UsageError(code, message, value=value, place=place, hint=_hint_for(argument, value))


def check_callable(argument: str, value: object, hint: str) -> None:
    """Raise ``PARALAGG_BAD_OPTION`` unless ``value``, the function ``step`` or ``base``, can be called."""
    if not callable(value):
        raise wrong_type(argument, value, argument, hint)


def check_aggs(aggs: object, place: str) -> None:
    """Raise ``PARALAGG_UNKNOWN_AGGREGATE`` unless ``aggs`` is None or a mapping from columns to aggregates."""
    if aggs is not None and not isinstance(aggs, Mapping):
        raise UsageError(
            "PARALAGG_UNKNOWN_AGGREGATE",
            f"aggs is a {type_name(aggs)}, not a dict from columns to aggregates",
            value=aggs,
            place=place,
            hint='pass a dict such as aggs={"dist": "min"}',
        )


def _hint_for(argument: str, value: object) -> str:
    column = _SHOWN_COLUMN.fullmatch(str(value))
    name = column["text"] if column and column["text"].isidentifier() else "node"
    if argument == "keys":
        return f'pass keys="{name}" or keys=["{name}", ...]; compute other columns in the base and in the step'
    return f'name the column: "{name}"'
