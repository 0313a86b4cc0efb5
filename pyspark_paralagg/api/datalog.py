"""``ra.datalog(spark, text, **dataframes)``: a text's relations as lazy DataFrames.

Last station of a text on Spark: ``parse`` -> ``resolve`` -> **api**. Relations are built when they are looked up,
with what they need and no more. Those that do not recurse are ordinary DataFrames, a recursive stratum is a
``recursive`` like any other.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.arguments import not_a_dataframe
from pyspark_paralagg.api.relations import columns_of
from pyspark_paralagg.errors import ParalaggError, UnsupportedError, UsageError, VerificationError
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.session.running import check_running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.api.dataframe import Declaration
    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.program.program import Mode, Relation


def datalog(  # noqa: PLR0913 - as recursive has them
    spark: SparkSession,
    text: str,
    inputs: Mapping[str, DataFrame] | None = None,
    /,
    *,
    name: str = "<text>",
    backend: str | None = None,
    mode: Mode = "auto",
    aggregators: Sequence[Any] = (),
    **dataframes: DataFrame,
) -> Relations:
    """The relations of a Datalog text whose inputs are these DataFrames; lazy.

    >>> result = ra.datalog(spark, '''                                                    # doctest: +SKIP
    ...     dist(x, 0) :- start(x).
    ...     dist(y, $MIN(d + w)) :- dist(x, d), edge(x, y, w).
    ...     .assume edge.w >= 0
    ... ''', edge=edges, start=starts)
    >>> result["dist"].show()                                                             # doctest: +SKIP

    inputs, dataframes
        Rows of relations, by name: those that the text reads and has no rules for, or further rows of those that it
        has. Columns are matched by name where the names are those of ``.decl``, else by position. A relation is a
        set: rows that come twice count once.
    name
        What errors call the text: a file's name.
    backend, mode
        As in :func:`recursive`, for each recursion in the text.
    aggregators
        Aggregators of your own (``ra.aggregator``, over one column), which heads use as ``$NAME(x)``.

    Raises ``DatalogError`` where the text is wrong, ``VerificationError`` where an aggregate may not recurse as it
    does, ``UsageError`` where a DataFrame does not fit; each with line and column, and with all that is wrong besides
    in its ``problems``. Texts are those of Soufflé with the aggregates of PARALAGG in heads (Sun et al. 2023) and
    PowerLog's indexed rules; ``docs/datalog.md`` has all of it.
    """
    from pyspark_paralagg.datalog.lower.unsigned import check_ansi  # noqa: PLC0415 - likewise
    from pyspark_paralagg.datalog.parse.parse import parse  # noqa: PLC0415 - the compiler loads when it is needed
    from pyspark_paralagg.datalog.text_to_program import resolve_text  # noqa: PLC0415 - likewise

    check_running(spark)
    given = {**(inputs or {}), **dataframes}
    for relation, df in given.items():
        _check_dataframe(relation, df)
    own = {a.name: a for a in aggregators}
    is_verified = mode == "auto" and backend != "dataframe" and not own

    def check(resolved: Resolved) -> None:
        _check_inputs(resolved, given)
        check_ansi(resolved, ansi=spark.conf.get("spark.sql.ansi.enabled") == "true")
        if is_verified:
            verify(resolved)

    columns = {n: columns_of(df) for n, df in given.items()}
    resolved = resolve_text(parse(text, name), columns, tuple(own), check)
    resolved = replace(resolved, program=replace(resolved.program, mode=mode))
    return Relations(spark, resolved, given, {"backend": backend, "mode": mode}, own)


class Relations(Mapping[str, "DataFrame"]):
    """The relations of a text: a mapping from name to lazy DataFrame.

    Iteration gives the text's ``.output`` relations, or all that have rules where it names none; every relation can be
    looked up. What several outputs share is cached once the second of them is looked up; ``unpersist`` frees it, as
    does the end of this object.
    """

    def __init__(
        self,
        spark: SparkSession,
        resolved: Resolved,
        inputs: Mapping[str, DataFrame],
        options: Mapping[str, Any],
        own: Mapping[str, Any],
    ) -> None:
        from pyspark_paralagg.api.inputs import conformed  # noqa: PLC0415 - pyspark is optional
        from pyspark_paralagg.api.strata import Strata  # noqa: PLC0415 - likewise

        self._resolved = resolved
        conform = {
            s.relation: conformed(inputs[s.relation], s, resolved) for s in resolved.sources if s.relation in inputs
        }
        self._strata = Strata(spark, resolved, conform, options, own)
        self._outputs = resolved.outputs
        self._finalizer = weakref.finalize(self, self._strata.unpersist)

    def __getitem__(self, name: str) -> DataFrame:
        """The relation ``name``, with the text's columns."""
        self._check_known(name)
        try:
            return self._strata.shown(name)
        except (VerificationError, UnsupportedError) as problem:
            raise self._strata.located(problem) from None

    def __contains__(self, name: object) -> bool:
        """Whether the text has a relation ``name``."""
        return name in self._resolved.shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __repr__(self) -> str:
        """The relations and their columns."""
        shown = [f"{n}({', '.join(self._resolved.names(n))})" for n in self._outputs]
        return f"Relations({', '.join(shown)})"

    def single(self, name: str) -> tuple[Declaration, Callable[..., Mapping[str, DataFrame]], dict[str, Any]] | str:
        """The recursion of ``name`` alone: what it starts from, its step, and the options of ``recursive``.

        A text says why, where other recursions are needed for it, or none.
        """
        self._check_known(name)
        return self._strata.single(name)

    def columns(self, name: str) -> dict[str, str]:
        """The type of each column of ``name``, as the text has them."""
        self._check_known(name)
        types = {c.name: c.type for c in self._resolved.program.relation(name).columns}
        return {c: types[c] for c in self._resolved.names(name)}

    def combined(self) -> list[Relation]:
        """The relations whose values users' aggregators combine, typed as the engines see them."""
        return self._strata.combined()

    @property
    def program(self) -> Any:  # noqa: ANN401 - a Program; its type is no public name
        """The Program that the text became."""
        return self._resolved.program

    def unpersist(self) -> None:
        """Frees what several outputs share; they can still be computed."""
        self._strata.unpersist()

    def _check_known(self, name: str) -> None:
        if name not in self._resolved.shapes:
            known = [n for n in self._resolved.shapes if "@" not in n]
            raise UsageError(
                "PARALAGG_UNKNOWN_RELATION",
                f"the text has no relation {name!r}",
                value=name,
                hint=did_you_mean(name, known),
            )


def _check_dataframe(relation: str, df: object) -> None:
    from pyspark.sql import DataFrame  # noqa: PLC0415 - this module loads without pyspark

    if not isinstance(df, DataFrame):
        raise not_a_dataframe(f"the input {relation!r}", df, f"input {relation}")


def _check_inputs(resolved: Resolved, given: Mapping[str, DataFrame]) -> None:
    """Every ``.input`` has its DataFrame, and every DataFrame its relation."""
    for relation in given:
        if relation not in resolved.mentioned:
            known = [s.relation for s in resolved.sources if "@" not in s.relation and s.relation not in given]
            raise UsageError(
                "PARALAGG_DATALOG_INPUT",
                f"the text does not mention the relation {relation!r}",
                value=relation,
                place=f"input {relation}",
                hint=did_you_mean(relation, known or [n for n in resolved.shapes if "@" not in n and n not in given]),
            )
    for source in resolved.sources:
        if source.is_external and source.relation not in given:
            span = resolved.input_spans.get(source.relation)
            message = f"`.input {source.relation}` has no DataFrame"
            hint = f"give it: ra.datalog(spark, text, {source.relation}=df)"
            if span is None:
                raise UsageError("PARALAGG_DATALOG_INPUT", message, value=source.relation, hint=hint)
            raise resolved.places.error("PARALAGG_DATALOG_INPUT", message, span, value=source.relation, hint=hint)


def verify(resolved: Resolved) -> None:
    """Refusals come at the call, with their line; what only Spark's analysis can tell, when a relation is built."""
    from pyspark_paralagg.compile import PASSES  # noqa: PLC0415 - likewise

    program = resolved.program
    try:
        for run in PASSES:
            program = run(program)
    except UnsupportedError:
        return  # whether an engine takes it is asked when it runs
    except VerificationError as problem:
        if problem.code == "PARALAGG_NOT_PROVED":
            return  # Spark's analysis knows more: what is never null
        raise located(problem, resolved) from None


def located(problem: ParalaggError, resolved: Resolved) -> ParalaggError:
    """``problem`` with the line of the rule that is its place."""
    span = resolved.spans.get(problem.place or "")
    return problem if span is None else resolved.places.located(problem, span)
