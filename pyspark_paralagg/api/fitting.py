"""Fit the columns of a DataFrame to a relation: names as the session compares them, types that lose no value."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


class NarrowBaseError(Exception):
    """The step returns wider types than the base has: the recursion has to be defined anew, with a wider base.

    It never reaches the user. A step sees the base's types before its own types are known, as in
    ``SELECT 1 AS node, 0 AS dist`` before a join with ``bigint`` edges.
    """

    def __init__(self, relation: str, types: Mapping[str, str]) -> None:
        super().__init__(f"the step of {relation} returns {types}")
        self.relation = relation
        self.types = types


def is_wider(wide: str, narrow: str) -> bool:
    """Return whether each value of the type ``narrow`` is one of the other type ``wide``.

    >>> is_wider("bigint", "int"), is_wider("double", "int"), is_wider("double", "bigint")
    (True, True, False)
    >>> is_wider("decimal(12,2)", "int"), is_wider("decimal(11,2)", "int"), is_wider("bigint", "void")
    (True, False, True)
    """
    if narrow == "void":
        return wide != "void"
    if narrow == "float":
        return wide == "double"
    if narrow not in _DIGITS:
        return False
    decimal = _DECIMAL.fullmatch(wide)
    if decimal is not None:
        precision, scale = map(int, decimal.groups())
        return precision - scale >= _DIGITS[narrow]
    if wide in _INTEGERS:
        return _INTEGERS.index(wide) > _INTEGERS.index(narrow)
    return wide == "double" and narrow != "bigint"


def widened(df: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """Return ``df`` with the columns that ``types`` names cast to these types, where they are wider than its own."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    df = renamed(df, types)
    own = {f.name: f.dataType.simpleString() for f in df.schema.fields}
    wider = {c: t for c, t in types.items() if c in own and is_wider(t, own[c])}
    columns = [F.col(quoted(c)).cast(wider[c]).alias(c) if c in wider else F.col(quoted(c)) for c in df.columns]
    return df.select(*columns) if wider else df


def renamed(df: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return ``df`` with columns that differ from one of ``names`` in case only renamed to it.

    Names stay as they are with ``spark.sql.caseSensitive``, and where two columns could be meant.
    """
    wanted = {n.lower(): n for n in names}
    times = Counter(c.lower() for c in df.columns)
    to = {c: wanted[c.lower()] for c in df.columns if c != wanted.get(c.lower(), c) and times[c.lower()] == 1}
    if not to or is_case_sensitive(df.sparkSession):
        return df
    return df.toDF(*(to.get(c, c) for c in df.columns))


def is_case_sensitive(session: SparkSession) -> bool:
    """Return whether names that differ in case only are different columns."""
    return session.conf.get("spark.sql.caseSensitive", "false") == "true"
