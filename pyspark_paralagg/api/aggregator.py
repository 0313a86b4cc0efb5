"""``ra.aggregator``: an aggregator of the user's own, written with Spark's column expressions (PARALAGG's partial_agg).

What it returns stands in ``aggs``. ``laws`` checks it, ``dependents`` types it; the Spark engine compiles its
expressions into its loop, the DataFrame executor reduces with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.user_aggregator import Side, UserAggregator
from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession


_TRIED_TYPES = ("bigint", "double", "string", "boolean")


def aggregator(  # noqa: PLR0913 - the arguments of the API, as the documentation has them
    name: str,
    combine: Callable[[Side, Side], Any] | None = None,
    *,
    improves: Callable[[Side, Side], Any] | None = None,
    identity: Any = None,  # noqa: ANN401 - a value of any type
    inverse: Callable[[Side, Side], Any] | None = None,
    columns: Sequence[str] | None = None,
    samples: Sequence[Any] | None = None,
) -> UserAggregator:
    """An aggregator for ``aggs``, over one column or over several that belong together.

    >>> cheapest = ra.aggregator("cheapest", columns=("cost", "hops"),                    # doctest: +SKIP
    ...     improves=lambda old, new: (new.cost < old.cost) | ((new.cost == old.cost) & (new.hops < old.hops)))
    >>> base.recursive_agg("node", {("cost", "hops"): cheapest}, step=...)                # doctest: +SKIP

    name
        For messages, and for ``$NAME(...)`` in texts; a word that is no aggregator yet.
    combine
        ``combine(old, new)`` is what two values make together: a Column, or with ``columns`` a dict, or a sequence in
        their order. ``old`` and ``new`` are Columns; with ``columns`` they have one as an attribute for each. No value
        is null: a row with a null in one of the columns contributes nothing. Without ``combine``, ``new`` replaces
        ``old`` where it improves it.
    improves
        Whether ``new`` changes what is held when that is ``old``; default: ``combine`` gives something else than
        ``old``.
    identity
        A value (a tuple with ``columns``) that changes none; told to the check, needed by nothing.
    inverse
        ``inverse(all, part)`` is what remains of ``all`` without ``part``. An aggregator that is not idempotent adds
        up, and recurses only with an inverse, through rules that copy its value; else ``mode="iterate"`` is left.
    columns
        Names for the columns, where there are several. In ``aggs`` they may be called otherwise; their order counts.
    samples
        Values (tuples with ``columns``) to check the laws with, where not every value of the type occurs: codes from
        0 to 3, say.

    It must be associative and commutative, and ``improves`` must agree with ``combine``. That is checked on samples
    when it is made, if there is a session, and again for the types of the columns that it is used on:
    ``VerificationError`` ``PARALAGG_AGGREGATOR_LAW``, with the values that break a law. One that is idempotent too
    makes a lattice. That a step is monotone in its order is proved where it copies the values; elsewhere
    ``mode="trust"`` takes your word. What it does not do: nested types inside the Spark engine's loop (plain
    DataFrames take them).
    """
    made = UserAggregator(name, combine, improves, identity, inverse, columns, samples)
    session = _active_session()
    if session is not None:
        _check(made, session)
    return made


def _check(made: UserAggregator, session: SparkSession) -> None:
    """Check the laws for the first type for which the lambdas make sense; columns of others are checked when used."""
    next((t for t in _TRIED_TYPES if _makes_sense(made, session, t)), None)


def _makes_sense(made: UserAggregator, session: SparkSession, type_: str) -> bool:
    from pyspark_paralagg.api.laws import typed  # noqa: PLC0415 - pyspark is optional

    try:
        typed(made, session, (type_,) * len(made.columns))
    except UsageError as problem:
        if problem.code != "PARALAGG_AGGREGATOR_TYPE":
            raise
        return False
    return True


def _active_session() -> SparkSession | None:
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - pyspark is optional
    except ImportError:
        return None
    return SparkSession.getActiveSession()
