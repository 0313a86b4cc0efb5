"""The aggregators of dependent columns: what they are called, what they take, what they give.

Types are Spark's ``simpleString``. The API checks a call with this table, the passes read ``is_idempotent`` from it,
and the executors implement the nine entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_INTEGRAL = ("tinyint", "smallint", "int", "bigint")


def is_integral(type_: str) -> bool:
    """Whether ``type_`` is one of the four integer types."""
    return type_ in _INTEGRAL


def is_numeric(type_: str) -> bool:
    """Whether ``type_`` can be added: integers, floats, decimals."""
    return is_integral(type_) or type_ in ("float", "double") or type_.startswith("decimal")


def is_orderable(type_: str) -> bool:
    """Whether Spark can compare two values of ``type_`` (everything but maps, variants and calendar intervals)."""
    return not any(part in type_ for part in ("map<", "variant", "void")) and type_ != "interval"


def _same(type_: str) -> str:
    return type_


def _sum_type(type_: str) -> str:
    """Spark's type of ``sum``, but for decimals, which keep theirs: a recursion must give back what it reads."""
    if is_integral(type_):
        return "bigint"
    return "double" if type_ == "float" else type_


@dataclass(frozen=True)
class Aggregator:
    """One aggregator.

    ``is_idempotent``: a row that comes twice counts once, which makes a lattice of it; the others accumulate.
    ``accepts`` and ``takes`` say which types, to a machine and to a reader. ``result`` is the column's type in the
    relation for the type that the base has.
    """

    name: str
    is_idempotent: bool
    takes: str
    accepts: Callable[[str], bool]
    result: Callable[[str], str] = _same
    has_order: bool = False


_ORDERED = ("any type with an order", is_orderable)
_BOOLEAN: tuple[str, Callable[[str], bool]] = ("boolean", lambda t: t == "boolean")
_BITS = ("tinyint, smallint, int or bigint", is_integral)

AGGREGATORS: dict[str, Aggregator] = {
    a.name: a
    for a in (
        Aggregator("min", True, *_ORDERED),
        Aggregator("max", True, *_ORDERED),
        Aggregator("sum", False, "a number", is_numeric, _sum_type),
        Aggregator("count", False, *_BITS, lambda _: "bigint"),
        Aggregator("any", True, *_BOOLEAN),
        Aggregator("all", True, *_BOOLEAN),
        Aggregator("bit_or", True, *_BITS),
        Aggregator("bit_and", True, *_BITS),
        Aggregator("min_by", True, *_ORDERED, has_order=True),
        Aggregator("max_by", True, *_ORDERED, has_order=True),
    )
}


@dataclass(frozen=True)
class MinBy:
    """Carry the column of the row whose ``order`` column is least: the parent on a shortest path, a label, a witness.

    ``order`` must itself be aggregated with ``"min"`` in the same relation. The smallest carried value wins a tie, a null
    carried value loses to any other, and a row whose order is null contributes nothing.

    >>> {"dist": "min", "parent": MinBy("dist")}["parent"].aggregator
    'min_by'
    """

    order: str
    aggregator = "min_by"
    order_aggregator = "min"

    def __repr__(self) -> str:
        return f"min_by({self.order!r})"


@dataclass(frozen=True)
class MaxBy:
    """Carry the column of the row whose ``order`` column is greatest; as :class:`MinBy`, with ``"max"``.

    >>> MaxBy("probability")
    max_by('probability')
    """

    order: str
    aggregator = "max_by"
    order_aggregator = "max"

    def __repr__(self) -> str:
        return f"max_by({self.order!r})"


Aggregation = str | MinBy | MaxBy
"""What stands on the right in ``aggs``."""
