"""The aggregators of dependent columns: what they are called, what they take, what they give.

Types are Spark's ``simpleString``. The API checks a call with this table, the passes read ``is_idempotent`` from it,
and the executors implement the nine entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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


def _is_boolean(type_: str) -> bool:
    return type_ == "boolean"


def _lattice(name: str, takes: str, accepts: Callable[[str], bool], *, has_order: bool = False) -> Aggregator:
    return Aggregator(name, is_idempotent=True, takes=takes, accepts=accepts, has_order=has_order)


_ANY_ORDER = "any type with an order"
_BITS = "tinyint, smallint, int or bigint"

AGGREGATORS: dict[str, Aggregator] = {
    a.name: a
    for a in (
        _lattice("min", _ANY_ORDER, is_orderable),
        _lattice("max", _ANY_ORDER, is_orderable),
        Aggregator("sum", is_idempotent=False, takes="a number", accepts=is_numeric, result=_sum_type),
        Aggregator("count", is_idempotent=False, takes=_BITS, accepts=is_integral, result=lambda _: "bigint"),
        _lattice("any", "boolean", _is_boolean),
        _lattice("all", "boolean", _is_boolean),
        _lattice("bit_or", _BITS, is_integral),
        _lattice("bit_and", _BITS, is_integral),
        _lattice("min_by", _ANY_ORDER, is_orderable, has_order=True),
        _lattice("max_by", _ANY_ORDER, is_orderable, has_order=True),
    )
}


@dataclass(frozen=True)
class MinBy:
    """Carry the column of the row whose ``order`` column is least: the parent on a shortest path, a label, a witness.

    ``order`` must itself be aggregated with ``"min"`` in the same relation. The smallest carried value wins a tie, a
    null carried value loses to any other, and a row whose order is null contributes nothing.

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
