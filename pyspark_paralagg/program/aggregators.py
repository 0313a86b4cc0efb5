"""The aggregators of dependent columns: one definition each, from which every part of the system reads.

The API checks calls with it, ``program.branch`` reads Spark's names for it, the proof reads how its values move, the
DataFrame executor which function of Spark it is, and the engine on ranks how two words are merged. The Spark engine has
one table beside it, ``plan/Aggregator.scala``. Types are Spark's ``simpleString``.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Move = Literal["const", "up", "down", "bits_up", "bits_down", "divides", "unknown"]
"""Where a value goes while the recursion runs: see ``compile.monotone``."""

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


def _bigint(_: str) -> str:
    return "bigint"


def _sum_type(type_: str) -> str:
    """Spark's type of ``sum``, but for decimals, which keep theirs: a recursion must give back what it reads."""
    if is_integral(type_):
        return "bigint"
    return "double" if type_ == "float" else type_


@dataclass(frozen=True)
class Aggregator:
    """One aggregator.

    ``combine`` is what it makes of two values, neither of them null (of what ``min_by`` carries: any change).
    ``identity`` changes nothing when combined; None where that is the greatest or least value of the type.
    ``is_idempotent``: a row that comes twice counts once, which makes a lattice of it; the others accumulate, and
    ``inverse`` takes away again what they added. ``moves`` is the direction in which values improve, ``ends`` says that
    no value improves for ever, ``is_counted`` that it is never below zero nor null.

    ``accepts`` and ``takes`` say which types, to a machine and to a reader; ``result`` is the column's type in the
    relation for the type that the base has. ``spark`` is the function of Spark that the DataFrame executor uses (None:
    it has a form of its own there), ``absorbs`` what Spark's analyser calls aggregates that do no more than this one.
    ``parameters``: it is not a word in ``aggs`` but a call with other columns, ``ra.min_by("dist")``; ``arguments`` are
    the numbers of arguments that its form in a text takes.

    ``is_sum``: values are added. ``counts_rows``: a row without a value counts 1. ``has_shares``: each witness adds a
    value of its own. ``merged`` is a Python expression of two words, ``{old}`` and ``{new}``; without it the better of
    the two is held, or their sum. ``overflow`` is the error where the result does not fit the type.
    """

    name: str
    combine: Callable[[Any, Any], Any]
    takes: str
    accepts: Callable[[str], bool]
    identity: Any = None
    is_idempotent: bool = True
    inverse: Callable[[Any, Any], Any] | None = None
    moves: Move = "unknown"
    ends: bool = False
    is_counted: bool = False
    result: Callable[[str], str] = _same
    spark: str | None = None
    absorbs: tuple[str, ...] = ()
    parameters: Literal["", "order", "witnesses"] = ""
    arguments: tuple[int, ...] = (1,)
    is_sum: bool = False
    counts_rows: bool = False
    has_shares: bool = False
    merged: str = ""
    overflow: str = ""

    @property
    def has_order(self) -> bool:
        """Whether of two values one is better, be it bit by bit."""
        return self.parameters == "order" or self.moves in ("up", "down", "bits_up", "bits_down")

    @property
    def counts(self) -> bool:
        """Whether the result is a number of rows or of witnesses."""
        return self.counts_rows or (self.is_counted and not self.has_shares)

    @property
    def is_truth(self) -> bool:
        """Whether it aggregates truth values."""
        return self.accepts is _is_boolean

    @property
    def keeps_inputs(self) -> bool:
        """Whether the result is one of the values that came in."""
        return self.combine in (_least, _greatest, _new)

    def improves(self, new: Any, old: Any) -> bool:  # noqa: ANN401 - values of any type
        """Whether ``new`` changes what is held when that is ``old``; a null changes nothing."""
        if new is None or old is None:
            return old is None and new is not None
        return order_key(self.combine(old, new)) != order_key(old)


def _is_boolean(type_: str) -> bool:
    return type_ == "boolean"


def _least(a: Any, b: Any) -> Any:  # noqa: ANN401 - values of any type
    return min(a, b, key=order_key)


def _greatest(a: Any, b: Any) -> Any:  # noqa: ANN401 - values of any type
    return max(a, b, key=order_key)


def order_key(value: Any) -> tuple[bool, Any]:  # noqa: ANN401 - values of any type
    """Return a sort key in Spark's order, in which NaN is the largest number."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (True, 0) if is_nan else (False, value)


def _new(_: Any, new: Any) -> Any:  # noqa: ANN401 - values of any type
    return new


_ORDER: dict[str, Any] = {"takes": "any type with an order", "accepts": is_orderable}
_BITS: dict[str, Any] = {"takes": "tinyint, smallint, int or bigint", "accepts": is_integral}
_TRUTH: dict[str, Any] = {"takes": "boolean", "accepts": _is_boolean, "ends": True}
_ADDS: dict[str, Any] = {
    "identity": 0, "is_idempotent": False, "inverse": operator.sub, "moves": "unknown", "spark": "sum", "is_sum": True,
}  # fmt: skip
_BY: dict[str, Any] = {"combine": _new, "parameters": "order", "arguments": (2,), **_ORDER}
_WITNESSES: dict[str, Any] = {
    "combine": max,
    "identity": 0,
    "moves": "up",
    "is_counted": True,
    "parameters": "witnesses",
}

MEAN_OF_MEANS = "the mean of 1 and the mean of 3 and 5 is 2.5, the mean of 1, 3 and 5 is 3"
"""Why there is no mean among the aggregators: property 1 does not hold (docs/papers.md: PowerLog, section 3.2)."""

# The analyser rewrites bool_or and bool_and to max and min. `count` is a sum of the numbers that `conform` makes.
AGGREGATORS: dict[str, Aggregator] = {
    a.name: a
    for a in (
        Aggregator("min", _least, moves="down", spark="min", absorbs=("min",), **_ORDER),
        Aggregator("max", _greatest, moves="up", spark="max", absorbs=("max",), **_ORDER),
        Aggregator("sum", operator.add, "a number", is_numeric, result=_sum_type, absorbs=("sum",), **_ADDS),
        Aggregator("count", operator.add, result=_bigint, counts_rows=True, arguments=(0, 1), **_BITS, **_ADDS),
        Aggregator(
            "any", max, identity=False, moves="up", spark="bool_or", absorbs=("max", "bool_or", "any", "some"), **_TRUTH
        ),
        Aggregator(
            "all", min, identity=True, moves="down", spark="bool_and", absorbs=("min", "bool_and", "every"), **_TRUTH
        ),
        Aggregator(
            "bit_or", operator.or_, identity=0, moves="bits_up", ends=True, spark="bit_or", absorbs=("bit_or",),
            merged="{old} | {new}", **_BITS,
        ),
        Aggregator(
            "bit_and", operator.and_, identity=-1, moves="bits_down", ends=True, spark="bit_and", absorbs=("bit_and",),
            merged="{old} & {new}", **_BITS,
        ),
        Aggregator(
            "gcd", math.gcd, identity=0, moves="divides", ends=True, merged="gcd({old}, {new})",
            overflow="a greatest common divisor overflows", **_BITS,
        ),
        Aggregator("min_by", absorbs=("min_by",), **_BY),
        Aggregator("max_by", absorbs=("max_by",), **_BY),
        Aggregator("mcount", takes="witnesses", accepts=is_orderable, result=_bigint, **_WITNESSES),
        Aggregator(
            "msum", takes="a number", accepts=is_numeric, result=_sum_type, absorbs=("max",), arguments=(2,),
            has_shares=True, **_WITNESSES,
        ),
    )
}  # fmt: skip

_OTHER = Aggregator("", _new, "", is_orderable)


def aggregator_named(name: str | None) -> Aggregator:
    """Return the definition of ``name``; of a user's aggregator, or of no aggregator, one without properties."""
    return AGGREGATORS.get(name or "", _OTHER)


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


BY_ORDER: dict[str, type[MinBy | MaxBy]] = {c.aggregator: c for c in (MinBy, MaxBy)}


@dataclass(frozen=True, init=False)
class MCount:
    """The number of distinct witnesses: ``aggs={"n": ra.mcount("who")}`` over a base and a step with a column ``who``.

    The relation shows the keys and ``n``, not ``who``. The count only grows, so the recursion may read it through an
    upward threshold (``n >= 3``: attendance). Several columns are one witness together. A witness with a null in it
    does not count, but its row makes the key known: with ``n`` = 0 if no other comes.

    >>> MCount("who")
    mcount('who')
    """

    witnesses: tuple[str, ...]
    aggregator = "mcount"
    value: str | None = None

    def __init__(self, *witnesses: str) -> None:
        object.__setattr__(self, "witnesses", witnesses)

    def __repr__(self) -> str:
        return f"mcount({', '.join(map(repr, self.witnesses))})"


@dataclass(frozen=True, init=False)
class MSum:
    """The sum over distinct witnesses of the greatest contribution of each: ``{"total": ra.msum("share", "who")}``.

    A contribution that is null or negative counts as 0, and so does any of a witness with a null in it: the sum only
    grows, and the recursion may read it through an upward threshold (``total > 50``: company control). Its type is that
    of ``sum``. Otherwise as :class:`MCount`.

    >>> MSum("share", "who")
    msum('share', 'who')
    """

    value: str
    witnesses: tuple[str, ...]
    aggregator = "msum"

    def __init__(self, value: str, *witnesses: str) -> None:
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "witnesses", witnesses)

    def __repr__(self) -> str:
        return f"msum({', '.join(map(repr, (self.value, *self.witnesses)))})"
