"""Define the aggregators of dependent columns, each once for the whole system.

The API checks calls with a definition, and ``program.branch`` reads Spark's names of it. The proof reads how its values
move, the DataFrame executor its Spark function, the engine on ranks how it merges two words. The Spark engine has its
own table, ``plan/Aggregator.scala``. Types are Spark's ``simpleString``.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Move = Literal["const", "up", "down", "bits_up", "bits_down", "divides", "unknown"]
"""The direction in which a value moves while the recursion runs: see ``compile.prove.monotone``."""

_INTEGRAL = ("tinyint", "smallint", "int", "bigint")


def is_integral(type_: str) -> bool:
    """Return whether ``type_`` is one of the four integer types."""
    return type_ in _INTEGRAL


def is_numeric(type_: str) -> bool:
    """Return whether values of ``type_`` can be added: integers, floats, decimals."""
    return is_integral(type_) or type_ in ("float", "double") or type_.startswith("decimal")


def is_orderable(type_: str) -> bool:
    """Return whether Spark orders values of ``type_``: all types except maps, variants and calendar intervals."""
    return not any(part in type_ for part in ("map<", "variant", "void")) and type_ != "interval"


def _same(type_: str) -> str:
    return type_


def _bigint(_: str) -> str:
    return "bigint"


def _sum_type(type_: str) -> str:
    """Return Spark's type of ``sum``; decimals keep their type, because a recursion returns the type that it reads."""
    if is_integral(type_):
        return "bigint"
    return "double" if type_ == "float" else type_


@dataclass(frozen=True)
class Aggregator:
    """The definition of one aggregator.

    ``combine`` returns the aggregate of two values that are not null; for the column that ``min_by`` carries it returns
    the new one. ``identity`` changes no value that it is combined with; None if that is the greatest or least value of
    the type. ``is_idempotent``: duplicate rows count once, so the values form a lattice. Other aggregators accumulate,
    and ``inverse`` subtracts what they added. ``moves`` is the direction in which values improve. ``ends``: no value
    improves forever. ``is_counted``: it is never negative and never null.

    ``accepts`` checks a type, and ``takes`` names the accepted types for users. ``result`` returns the column's type in
    the relation for its type in the base. ``spark`` is the Spark function that the DataFrame executor uses (None: it
    has special code there). ``absorbs`` are Spark's names of aggregates in a step that this one makes superfluous.
    ``parameters``: ``aggs`` has a call with other columns, ``ra.min_by("dist")``, and not a name. ``arguments`` are the
    numbers of arguments that its form in a Datalog text takes.

    ``is_sum``: values are added. ``counts_rows``: a row without a value counts 1. ``shares`` is the number of columns
    that each witness has of its own, before the witness in the call. ``merged`` is a Python expression of two words,
    ``{old}`` and ``{new}``; without it the result is the better of the two, or their sum. ``overflow`` is the error
    message if the result does not fit the type.
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
    shares: int = 0
    merged: str = ""
    overflow: str = ""

    @property
    def has_order(self) -> bool:
        """Return whether two values have a better one, at least bit by bit."""
        return self.parameters == "order" or self.moves in ("up", "down", "bits_up", "bits_down")

    @property
    def counts(self) -> bool:
        """Return whether the result is a number of rows or of witnesses."""
        return self.counts_rows or (self.is_counted and not self.shares)

    @property
    def witness_aggregator(self) -> str:
        """Return the aggregator that keeps the shares of one witness."""
        return "min" if self.moves == "down" else "max"

    @property
    def is_truth(self) -> bool:
        """Return whether it aggregates booleans."""
        return self.accepts is _is_boolean

    @property
    def keeps_inputs(self) -> bool:
        """Return whether the result is one of the input values."""
        return self.combine in (_minimum, _maximum, _new)

    def improves(self, new: Any, old: Any) -> bool:  # noqa: ANN401 - values of any type
        """Return whether ``new`` changes the stored value ``old``; a null changes nothing."""
        if new is None or old is None:
            return old is None and new is not None
        return order_key(self.combine(old, new)) != order_key(old)


def _is_boolean(type_: str) -> bool:
    return type_ == "boolean"


def _minimum(a: Any, b: Any) -> Any:  # noqa: ANN401 - values of any type
    return min(a, b, key=order_key)


def _maximum(a: Any, b: Any) -> Any:  # noqa: ANN401 - values of any type
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
_WITNESSES: dict[str, Any] = {"is_counted": True, "parameters": "witnesses"}

MEAN_OF_MEANS = "the mean of 1 and the mean of 3 and 5 is 2.5, but the mean of 1, 3 and 5 is 3"
"""The reason why the mean is no aggregator: property 1 does not hold (docs/papers.md: PowerLog, section 3.2)."""

# The analyser rewrites bool_or and bool_and to max and min. `count` is a sum of the numbers that `conform` makes.
AGGREGATORS: dict[str, Aggregator] = {
    a.name: a
    for a in (
        Aggregator("min", _minimum, moves="down", spark="min", absorbs=("min",), **_ORDER),
        Aggregator("max", _maximum, moves="up", spark="max", absorbs=("max",), **_ORDER),
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
        Aggregator(
            "mcount", max, takes="witnesses", accepts=is_orderable, identity=0, result=_bigint, moves="up",
            **_WITNESSES,
        ),
        Aggregator(
            "msum", max, takes="a number", accepts=is_numeric, result=_sum_type, absorbs=("max",), arguments=(2,),
            moves="up", identity=0, shares=1, **_WITNESSES,
        ),
        Aggregator(
            "h_index", min, result=_bigint, absorbs=("min",), arguments=(3,), moves="down", ends=True, shares=2,
            **_BITS, **_WITNESSES,
        ),
    )
}  # fmt: skip

_OTHER = Aggregator("", _new, "", is_orderable)


def aggregator_named(name: str | None) -> Aggregator:
    """Return the definition of ``name``; for a user's aggregator, or None, a definition without properties."""
    return AGGREGATORS.get(name or "", _OTHER)


@dataclass(frozen=True)
class MinBy:
    """Carry a column of the row whose ``order`` column is least: the parent on a shortest path, a label, a witness.

    ``order`` must be aggregated with ``"min"`` in the same relation. In a tie the smallest carried value wins; any
    value wins over null. A row whose ``order`` is null contributes nothing.

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
    """Carry a column of the row whose ``order`` column is greatest; as :class:`MinBy`, with ``"max"``.

    >>> MaxBy("probability")
    max_by('probability')
    """

    order: str
    aggregator = "max_by"
    order_aggregator = "max"

    def __repr__(self) -> str:
        return f"max_by({self.order!r})"


BY_ORDER: dict[str, type[MinBy | MaxBy]] = {c.aggregator: c for c in (MinBy, MaxBy)}


@dataclass(frozen=True, repr=False)
class Witnessed:
    """A call with columns of witnesses, last, and with the ``shares`` that each witness has of its own."""

    shares: tuple[str, ...]
    witnesses: tuple[str, ...]
    aggregator: ClassVar[str]

    def __repr__(self) -> str:
        return f"{self.aggregator}({', '.join(map(repr, (*self.shares, *self.witnesses)))})"


class MCount(Witnessed):
    """Count distinct witnesses: ``aggs={"n": ra.mcount("who")}`` over a base and a step with a column ``who``.

    The relation has the keys and ``n``, but not ``who``. The count only grows, so the recursion may read it through an
    upward threshold (``n >= 3``: attendance). Several columns together are one witness. A witness with a null does not
    count, but its row creates the key, with ``n`` = 0 if the key has no other witness.

    >>> MCount("who")
    mcount('who')
    """

    aggregator = "mcount"

    def __init__(self, *witnesses: str) -> None:
        super().__init__((), witnesses)


class MSum(Witnessed):
    """Sum the greatest contribution of each distinct witness: ``{"total": ra.msum("share", "who")}``.

    A contribution that is null or negative counts as 0, as does every contribution of a witness with a null. The sum
    therefore only grows, and the recursion may read it through an upward threshold (``total > 50``: company control).
    Its type is that of ``sum``. All else is as in :class:`MCount`.

    >>> MSum("share", "who")
    msum('share', 'who')
    """

    aggregator = "msum"

    def __init__(self, value: str, *witnesses: str) -> None:
        super().__init__((value,), witnesses)


class HIndex(Witnessed):
    """Find the greatest h that at least h of ``total`` witnesses hold: ``{"h": ra.h_index("total", "value", "who")}``.

    A witness holds h if its ``value`` is at least h. A key has as many witnesses as its ``total`` says, and those that
    no row names hold any h. Of several rows of a witness the least value counts, of a key the least total. A null value
    or witness says nothing, so that only the total of the row counts; a null total is 0. The result is a bigint of at
    least 0.

    The result only falls, so the recursion may read it through a downward threshold. If the values are those of a
    vertex' neighbours, the fixpoint has the core numbers (:func:`pyspark_paralagg.graph.k_core`); if they are those of
    the other two edges of each triangle, the truss numbers. Each key takes 4 bytes for each h up to its first total.

    Source: Lü et al. 2016, "The H-index of a network node and its relation to degree and coreness"; Sariyüce, Seshadhri
    and Pinar 2018, "Local algorithms for hierarchical dense subgraph discovery".

    >>> HIndex("degree", "core", "who")
    h_index('degree', 'core', 'who')
    """

    aggregator = "h_index"

    def __init__(self, total: str, value: str, *witnesses: str) -> None:
        super().__init__((total, value), witnesses)


BY_WITNESS: dict[str, type[MCount | MSum | HIndex]] = {c.aggregator: c for c in (MCount, MSum, HIndex)}
