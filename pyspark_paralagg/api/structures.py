"""Convert the records and branches of DataFrames between Soufflé's text and the encoding that rules work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from pyspark_paralagg.datalog.parse.syntax import Text


def decoded(df: DataFrame, tree: Text, relation: str) -> DataFrame:
    """Return ``df``, the rows of ``relation``, with records and branches as Soufflé's text."""
    from pyspark_paralagg.datalog.desugar.structures import decoder  # noqa: PLC0415 - the compiler loads when needed

    return _converted(df, tree, relation, lambda type_: decoder(type_, tree.structures))


def encoded(df: DataFrame, tree: Text, relation: str) -> DataFrame:
    """Return ``df``, an input of ``relation``, with records and branches encoded; a wrong text ends the job."""
    from pyspark_paralagg.datalog.desugar.structure_reader import StructureReader  # noqa: PLC0415 - likewise

    return _converted(df, tree, relation, lambda type_: StructureReader(type_, tree.structures).encode)


def _converted(df: DataFrame, tree: Text, relation: str, converter: Callable[[str], Callable[[str], str]]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the usual name; pyspark is optional

    for column, type_ in zip(df.columns, tree.columns.get(relation, ()), strict=False):
        if type_ is not None:
            convert = F.udf(converter(type_), "string", useArrow=False)
            df = df.withColumn(column, convert(F.col(quoted(column))))
    return df
