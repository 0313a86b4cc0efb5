"""Sets of bounded size as values: ``ra.collect_set``, an aggregator over arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.api.fitting import NarrowBaseError, is_wider
from pyspark_paralagg.api.user_aggregator import UserAggregator
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.aggregators import is_orderable
from pyspark_paralagg.program.custom import Custom
from pyspark_paralagg.program.sets import COLLECT_SET, element_type, merged_sets, set_type
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

    from pyspark_paralagg.program.program import Relation


class CollectSet(UserAggregator):
    """The ``limit`` least elements of all sets, in ascending order; :func:`collect_set` returns it."""

    def __init__(self, limit: int) -> None:
        def combine(old: Column, new: Column) -> Column:
            from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

            return _least(F.array_union(old, new), limit)

        super().__init__(COLLECT_SET, combine, None, None, None, None, None)
        self.limit = limit

    def __repr__(self) -> str:
        return f"collect_set(limit={self.limit})"

    def result_type(self, type_: str) -> str:
        """Return the type of the sets in a relation whose base has a column of ``type_``."""
        return set_type(type_) if element_type(type_) is None else type_

    def lawful(self, types: tuple[str, ...]) -> Custom:
        """Return the merge of two sets, which every engine has: its laws hold for all elements with an order."""
        if not is_orderable(types[0]):
            raise UsageError(
                "PARALAGG_AGGREGATOR_TYPE",
                f"elements of {element_type(types[0])} have no order",
                value=types,
                place="aggregator collect_set",
                hint="collect a key of theirs, such as a number or a string",
            )
        return Custom(self.name, self.columns, self, combine=(merged_sets(types[0], self.limit),))

    def normalized(self, value: Column) -> Column:
        """Return the array ``value`` as a set: in ascending order, without duplicates, nulls and what is too much."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

        return _least(F.array_distinct(F.array_compact(value)), self.limit)


def collect_set(*, limit: int) -> CollectSet:
    """Collect the ``limit`` least different values of each key, as an array in ascending order.

    >>> edges.selectExpr("owner AS asset", "owner AS owners").recursive_agg(              # doctest: +SKIP
    ...     "asset", {"owners": ra.collect_set(limit=10)},
    ...     step=lambda d: d.join(edges, d.asset == edges.owner).selectExpr("edges.asset", "owners"))

    The column of the base and that of the step hold one element for each row, or an array: a set of elements. The
    recursion reads and returns arrays. Nulls are ignored, as by Spark's ``collect_set``. The arrays of a step are taken
    as they are; one that it computes has to be in ascending order and without duplicates.

    The least elements of a union are those of the least elements of its parts, so these sets are a lattice. A step that
    copies them, or adds elements, is proved. Elements have a type with an order. A ``limit`` below 1 is
    ``PARALAGG_AGGREGATOR``.
    """
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise UsageError(
            "PARALAGG_AGGREGATOR",
            f"limit={limit!r} is not valid",
            value=limit,
            place="ra.collect_set",
            hint="set limit to the largest number of elements that a set may have",
        )
    return CollectSet(limit)


def as_sets(df: DataFrame, relation: Relation, *, is_base: bool = False) -> DataFrame:
    """Return ``df`` with arrays where a column of ``relation`` is collected and ``df`` has elements.

    The arrays of a base become sets. Raises ``NarrowBaseError`` if elements are wider than those of the relation.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    types = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    columns: dict[str, Column] = {}
    for name, type_, source in _collected(relation):
        value, own = F.col(quoted(name)), types.get(name, type_)
        element = str(element_type(type_))
        if is_wider(own, element):
            raise NarrowBaseError(relation.name, {name: own})
        if own == element or is_wider(element, own):
            columns[name] = F.when(value.isNotNull(), F.array(value.cast(element)))
        elif is_base and own == type_:
            columns[name] = source.normalized(value)
    return df.withColumns(columns) if columns else df


def _collected(relation: Relation) -> Iterable[tuple[str, str, CollectSet]]:
    for d in relation.dependents:
        if d.custom is not None and isinstance(d.custom.source, CollectSet):
            yield d.column.name, d.column.type, d.custom.source


def _least(array: Column, limit: int) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    return F.slice(F.sort_array(array), 1, limit)
