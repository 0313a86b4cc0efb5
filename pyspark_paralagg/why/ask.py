"""Define ``why`` and ``why_not``: ask an engine about one row of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyspark_paralagg.api.dataframe import recursion_of
from pyspark_paralagg.api.datalog import text_relation_of
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.session.arguments import check_dataframe, check_type
from pyspark_paralagg.why.absence import absence_of
from pyspark_paralagg.why.constants import constants, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from pyspark_paralagg.api.dataframe import Recursion
    from pyspark_paralagg.program.question import Question
    from pyspark_paralagg.why.absence import Absence
    from pyspark_paralagg.why.proof import Proof

    class RecursiveTable(Protocol):
        """A table with the rows of a recursion: ``ra.delta.RecursiveTable``."""

        def recomputed(self) -> DataFrame:
            """Return the recursion."""

    _Asked = tuple[str, Mapping[str, str], Callable[[Question], DataFrame]]

_LIMIT = 100_000


def why(
    df: DataFrame | RecursiveTable,
    row: Mapping[str, Any] | None = None,
    /,
    *,
    of: str | None = None,
    limit: int = _LIMIT,
    **keys: Any,  # noqa: ANN401 - values of any type
) -> Proof:
    """Return the proof of one row of a recursion: the rules and input rows that derive it; runs at the call.

    >>> print(ra.why(dist, node=7))                                                       # doctest: +SKIP
    dist(node=7, dist=9)   by step of dist
      dist(node=4, dist=5)   by step of dist
        dist(node=0, dist=0)   by base of dist
        edges(src=0, dst=4, weight=5)
      edges(src=4, dst=7, weight=4)

    df
        The DataFrame that ``recursive_agg``, ``recursive`` or ``ra.datalog(...)["dist"]`` returned, the ``rows`` of
        ``ra.maintain``, a query with one recursion in SQL, or a ``ra.delta.RecursiveTable``.
    row, keys
        The values of all keys of the row, by name: ``node=7``, or ``{"node": 7}``.
    of
        The column to explain, where several are aggregated by themselves: a row may have its ``min`` from one rule and
        its ``max`` from another.
    limit
        The most derivations that the engine may return, for all rows of the proof.

    The proof has the least depth of all; of several such ones it is the first in the order of rules and values. For
    ``sum``, ``count``, ``bit_or`` and the like, and your own aggregators, it lists the contributions, largest first.

    The engine of ``df`` computes the recursion, then the heights of its rows, and goes backwards from the asked row.
    That takes a few times as long as the recursion, however deep the proof is. Results that nobody asks cost nothing.
    A relation of a text is computed in this process, as ``paralagg run --why`` does, so its inputs must fit there.

    Raises ``UsageError`` ``PARALAGG_WHY`` for a DataFrame that is no such result, for wrong keys, and if the result has
    no such row; ``UnsupportedError`` ``PARALAGG_WHY_UNSUPPORTED`` if plain DataFrames compute it, and ``FixpointError``
    ``PARALAGG_WHY_LARGE`` beyond ``limit``.
    """
    from pyspark_paralagg.compile.rewrite.derivations import Derivations  # noqa: PLC0415 - the compiler comes with it
    from pyspark_paralagg.why.prover import check_size, first_proof  # noqa: PLC0415 - likewise
    from pyspark_paralagg.why.text import why_in_text  # noqa: PLC0415 - likewise

    check_type("limit", limit, int, "a number of derivations, such as limit=1_000_000")
    df, given = _asked_row(df, row, keys, "ra.why")
    text = text_relation_of(df)
    if text is not None:
        return why_in_text(df, text, given, of, limit)
    name, types, ask = _asked(df, "ra.why")
    question = Derivations(name, [constants(given, types, name)], of)
    rows = ask(question).limit(limit + 1).collect()
    check_size(len(rows), limit, name)
    return first_proof(question, [r.asDict() for r in rows], shown(name, given))


def why_not(df: DataFrame | RecursiveTable, row: Mapping[str, Any] | None = None, /, **keys: Any) -> Absence:  # noqa: ANN401 - as in why
    """Return why a recursion has no row with these keys: for each rule, the first thing that it lacks.

    >>> print(ra.why_not(dist, node=9))                                                   # doctest: +SKIP
    there is no row dist(node=9)
      base of dist: input 0 has no row with node = 9
      step of dist: dist has no row with node = src for the 2 rows of edges

    ``df``, ``row`` and ``keys`` are as in :func:`why`, and so is the cost. Raises ``UsageError`` ``PARALAGG_WHY`` if
    there is such a row, too.
    """
    from pyspark_paralagg.compile.rewrite.failures import Failures  # noqa: PLC0415 - the compiler comes with it
    from pyspark_paralagg.why.text import why_not_in_text  # noqa: PLC0415 - likewise

    df, given = _asked_row(df, row, keys, "ra.why_not")
    text = text_relation_of(df)
    if text is not None:
        return why_not_in_text(df, text, given)
    name, types, ask = _asked(df, "ra.why_not")
    question = Failures(name, constants(given, types, name))
    answer = ask(question).collect()
    return absence_of(question, [r.asDict() for r in answer], shown(name, given))


def _asked_row(
    df: DataFrame | RecursiveTable, row: Mapping[str, Any] | None, keys: Mapping[str, Any], function: str
) -> tuple[DataFrame, dict[str, Any]]:
    """Return the result that is asked about, and the given keys."""
    check_type("row", row or {}, Mapping, 'the keys by name, such as {"node": 7}')
    recomputed: Callable[[Any], DataFrame] | None = getattr(type(df), "recomputed", None)  # of a RecursiveTable
    if recomputed is None:
        check_dataframe("df", df, function, "PARALAGG_WHY")
    return cast("DataFrame", df) if recomputed is None else recomputed(df), {**(row or {}), **keys}


def _asked(df: DataFrame, function: str) -> _Asked:
    """Return the relation whose rows ``df`` has, the types of its keys, and what answers a question."""
    from pyspark_paralagg.why.sql import sql_recursion_of  # noqa: PLC0415 - the compiler comes with it

    found = recursion_of(df)
    if found is not None:
        name, recursion = found
        return name, _key_types(df, name, recursion), recursion.ask
    in_sql = sql_recursion_of(df)
    if in_sql is None:
        raise UsageError(
            "PARALAGG_WHY",
            f"{function} explains rows of recursive_agg, recursive, a text's relation or one recursion in SQL, "
            "and this is none of them",
            value=type(df).__name__,
            place=function,
            hint="pass the DataFrame that the call returned, before filters and joins; or write the query of SQL with "
            "a single recursion",
        )
    return in_sql.name, in_sql.keys, in_sql.ask


def _key_types(df: DataFrame, name: str, recursion: Recursion) -> dict[str, str]:
    declared = recursion.declared[name].keys
    names = [declared] if isinstance(declared, str) else list(declared or [])
    types = {f.name.lower(): f.dataType.simpleString() for f in df.schema.fields}
    return {n: types[n.lower()] for n in names}
