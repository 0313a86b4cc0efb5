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
    from pyspark.sql.types import StructType, _parse_datatype_string  # noqa: PLC0415 - pyspark is optional

    fields = [] if like is None else like.schema.fields
    types = {(f.name, f.dataType.simpleString()): f.dataType for f in fields}
    schema = StructType()
    for name, type_ in columns:
        schema = schema.add(name, types.get((name, type_)) or _parse_datatype_string(type_), nullable)
    return schema
