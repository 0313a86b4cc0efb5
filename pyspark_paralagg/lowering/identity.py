"""Map a column to an expression whose Spark equality is identity: equal only if both values have the same bytes.

Spark's equality, of GROUP BY and joins, calls values equal that expressions tell apart: 0.0 and -0.0, also within
arrays and structs, and strings of a collation such as UTF8_LCASE. Keys of a relation are compared by Spark's equality.
Rows that came, went or changed are compared by identity. Most types are their own identity, and cost nothing more.
NaNs are one value: no expression of Spark tells their bits apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_FRACTIONS = ("double", "float")
_STRINGS = ("string", "char", "varchar")
_EXACT = (
    *("boolean", "byte", "short", "integer", "long", "decimal", "binary", "void"),
    *("date", "timestamp", "timestamp_ntz", "time", "daytimeinterval", "yearmonthinterval"),
)
"""Names of the other types without parts. Each is its own identity."""


def has_identity(kind: DataType) -> bool:
    """Return whether ``identity`` maps values of the type; it does not map maps, variants and user-defined types."""
    from pyspark.sql.types import ArrayType, StructType  # noqa: PLC0415 - pyspark is optional

    if isinstance(kind, ArrayType):
        return has_identity(kind.elementType)
    if isinstance(kind, StructType):
        names = {f.name.lower() for f in kind.fields}  # a field is found by its name
        return len(names) == len(kind.fields) and all(has_identity(f.dataType) for f in kind.fields)
    return kind.typeName() in (*_FRACTIONS, *_STRINGS, *_EXACT)


def is_own_identity(kind: DataType) -> bool:
    """Return whether Spark's equality of values of the type is identity."""
    from pyspark.sql.types import ArrayType, StructType  # noqa: PLC0415 - pyspark is optional

    if isinstance(kind, ArrayType):
        return is_own_identity(kind.elementType)
    if isinstance(kind, StructType):
        return all(is_own_identity(f.dataType) for f in kind.fields)
    return not _is_collated(kind) and kind.typeName() not in _FRACTIONS


def identity(column: Column, kind: DataType) -> Column:
    """Return an expression that is equal for two values of the type only if they are identical, or both null."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional
    from pyspark.sql.types import ArrayType, StructType  # noqa: PLC0415 - likewise

    if is_own_identity(kind):
        return column
    if isinstance(kind, ArrayType):
        return F.transform(column, lambda element: identity(element, kind.elementType))
    if isinstance(kind, StructType):
        fields = (identity(column.getField(f.name), f.dataType).alias(f.name) for f in kind.fields)
        return F.when(column.isNotNull(), F.struct(*fields))
    if kind.typeName() in _STRINGS:
        return column.cast("binary")
    zero = F.when(column == 0, column.cast("string"))  # "0.0" or "-0.0"
    return F.struct(column.alias("value"), zero.alias("zero"))


def _is_collated(kind: DataType) -> bool:
    """Return whether the type is a string with a collation; Spark 3.5 has none."""
    return kind.typeName() in _STRINGS and getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY"
