"""Columns of a relation as a ``StructType``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def struct_of(
    columns: Iterable[tuple[str, str]], like: DataFrame | None = None, *, nullable: bool = True
) -> StructType:
    """``columns`` (name, Spark type) as Spark has them; of one that ``like`` has too, the type as it stands there."""
    from pyspark.sql.types import DataType, StructType  # noqa: PLC0415 - pyspark is optional

    fields = [] if like is None else like.schema.fields
    known = {(f.name, f.dataType.simpleString()): f.dataType for f in fields}
    schema = StructType()
    for name, kind in columns:
        schema = schema.add(name, known.get((name, kind)) or DataType.fromDDL(kind), nullable)
    return schema
