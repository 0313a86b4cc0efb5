"""Build the ``StructType`` of a relation's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def struct_of(
    columns: Iterable[tuple[str, str]], like: DataFrame | None = None, *, nullable: bool = True
) -> StructType:
    """Return ``columns`` (name, Spark type) as a ``StructType``; a column that ``like`` has keeps its type there."""
    from pyspark.sql import types as t  # noqa: PLC0415 - pyspark is optional

    plain = (t.LongType(), t.IntegerType(), t.DoubleType(), t.StringType(), t.BooleanType(), t.DateType())
    known = {p.simpleString(): p for p in plain}  # over Connect the server parses the names of all others
    fields = [] if like is None else like.schema.fields
    types = {(f.name, f.dataType.simpleString()): f.dataType for f in fields}
    schema = t.StructType()
    for name, type_ in columns:
        known_type = types.get((name, type_)) or known.get(type_)
        schema = schema.add(name, known_type or t._parse_datatype_string(type_), nullable)  # noqa: SLF001 - the only parser
    return schema
