"""Define an aggregator by Spark column expressions: ``ra.aggregator``, PARALAGG's ``partial_agg`` (Sun et al.).

Users put the result into ``aggs``. ``dependents`` types it, and ``laws`` checks it. The Spark engine compiles its
expressions into the loop; the DataFrame executor reduces with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.user_aggregator import Side, UserAggregator
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.session.quiet import without_spark_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession


_SAMPLE_TYPES = ("bigint", "double", "string", "boolean", "array<bigint>")


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
    """Return a user-defined aggregator for ``aggs``, over one column or over several that belong together.

    >>> cheapest = ra.aggregator("cheapest", columns=("cost", "hops"),                    # doctest: +SKIP
    ...     improves=lambda old, new: (new.cost < old.cost) | ((new.cost == old.cost) & (new.hops < old.hops)))
    >>> base.recursive_agg("node", {("cost", "hops"): cheapest}, step=...)                # doctest: +SKIP

    name
        The name in messages, and in ``$NAME(...)`` of Datalog texts; an identifier that is no aggregator yet.
    combine
        ``combine(old, new)`` returns the aggregate of two values: a Column, or with ``columns`` a dict, or a sequence
        in their order. ``old`` and ``new`` are Columns; with ``columns`` they have one attribute for each. No value is
        null: a row with a null in one of the columns contributes nothing. Without ``combine``, ``new`` replaces
        ``old`` if it improves it.
    improves
        ``improves(old, new)`` is true if ``new`` changes the stored value ``old``; default: ``combine`` returns another
        value than ``old``.
    identity
        A value (a tuple with ``columns``) that changes no other value. Only the check of the laws uses it.
    inverse
        ``inverse(all, part)`` removes ``part`` from ``all``. An aggregator that is not idempotent accumulates. It may
        recurse only with an inverse, through rules that copy its value; without one, only by ``mode="iterate"``.
    columns
        Names of the columns, if there are several. The names in ``aggs`` may differ; the order decides.
    samples
        Values (tuples with ``columns``) on which the laws are checked, if not every value of the type occurs: codes
        from 0 to 3, for example.

    ``combine`` must be associative and commutative, and ``improves`` must agree with it. Both are checked on samples:
    when the aggregator is created, if there is a session, and again for the types of the columns that use it. A
    violation raises ``VerificationError`` ``PARALAGG_AGGREGATOR_LAW`` with the values that break the law. An idempotent
    aggregator makes a lattice. A step that copies the values is proved monotone in the lattice's order; any other step
    needs ``mode="trust"``. Columns may have nested types. See also :func:`collect_set`.
    """
    created = UserAggregator(name, combine, improves, identity, inverse, columns, samples)
    session = _active_session()
    if session is not None:
        _check_first_type(created, session)
    return created


def _check_first_type(created: UserAggregator, session: SparkSession) -> None:
    """Check the laws for the first type that the lambdas accept; other types are checked on use."""
    next((t for t in _SAMPLE_TYPES if _accepts(created, session, t)), None)


def _accepts(created: UserAggregator, session: SparkSession, type_: str) -> bool:
    from pyspark_paralagg.api.laws import check_laws  # noqa: PLC0415 - pyspark is optional

    try:
        with without_spark_logs():
            check_laws(created, session, (type_,) * len(created.columns))
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
