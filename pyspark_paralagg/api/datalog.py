"""Return the relations of a Datalog text as lazy DataFrames: ``ra.datalog(spark, text, **dataframes)``.

Last step of a text on Spark: ``parse`` -> ``resolve`` -> **api**. A relation is built when it is looked up, with only
the relations that it needs. A relation that does not recurse is an ordinary DataFrame; a recursive stratum becomes a
call of ``recursive``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.relations import columns_of
from pyspark_paralagg.api.structures import decoded, encoded
from pyspark_paralagg.errors import ParalaggError, UnsupportedError, UsageError, VerificationError
from pyspark_paralagg.program.names import is_added
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.program.traced import trace_type
from pyspark_paralagg.session.arguments import check_dataframe, check_type
from pyspark_paralagg.session.running import check_running, is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.api.strata import Layer
    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.datalog.parse.syntax import Text
    from pyspark_paralagg.datalog.resolve.functors import Functions
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
    functors: Functions = MappingProxyType({}),
    **dataframes: DataFrame,
) -> Relations:
    """Return the relations of a Datalog text over the given DataFrames; lazy.

    >>> result = ra.datalog(spark, '''                                                    # doctest: +SKIP
    ...     dist(x, 0) :- start(x).
    ...     dist(y, $MIN(d + w)) :- dist(x, d), edge(x, y, w).
    ...     .assume edge.w >= 0
    ... ''', edge=edges, start=starts)
    >>> result["dist"].show()                                                             # doctest: +SKIP

    inputs, dataframes
        The rows of relations, by relation name. A relation may also have rules; then its rows are added. Columns are
        matched by name if the names are those of ``.decl``, else by position. A relation is a set: duplicate rows
        count once.
    name
        The name of the text in errors, such as a file name.
    backend, mode
        As in :func:`recursive`, for each recursion in the text.
    aggregators
        Your own aggregators (``ra.aggregator``, over one column), which heads use as ``$NAME(x)``.
    functors
        The functions of the text's functors, by name. A function gets a numpy array for each argument, and returns an
        array or a list of the same length. ``.functor f(x: number): number`` declares it, ``@f(x)`` calls it.

    Raises ``DatalogError`` if the text is wrong, ``VerificationError`` if an aggregate may not recurse, and
    ``UsageError`` if a DataFrame does not fit. Each error has line and column, and lists further errors in
    ``problems``. The language is Soufflé's Datalog with PARALAGG's aggregates in heads (Sun et al. 2023) and
    PowerLog's indexed rules; ``docs/datalog.md`` describes it.
    """
    from pyspark.sql import SparkSession as AnySession  # noqa: PLC0415 - this module loads without pyspark

    from pyspark_paralagg.datalog.lower.unsigned import check_ansi  # noqa: PLC0415 - likewise
    from pyspark_paralagg.datalog.read import read  # noqa: PLC0415 - the compiler loads when it is needed
    from pyspark_paralagg.datalog.text_to_program import resolve_text  # noqa: PLC0415 - likewise

    if not is_connect(spark):  # whose class is another one
        check_type("spark", spark, AnySession, "the Spark session first: ra.datalog(spark, text, ...)")
    check_type("text", text, str, "the program's text; of a file, Path(...).read_text()")
    check_running(spark)
    frames = {**(inputs or {}), **dataframes}
    for relation, df in frames.items():
        check_dataframe(f"the input {relation!r}", df, f"input {relation}")
    own_aggregators = {a.name: a for a in aggregators}
    is_verified = mode == "auto" and not own_aggregators

    def check(resolved: Resolved) -> None:
        _check_inputs(resolved, frames)
        check_ansi(resolved, ansi=spark.conf.get("spark.sql.ansi.enabled") == "true")
        if is_verified:
            verify(resolved)

    columns = {n: columns_of(df) for n, df in frames.items()}
    tree = read(text, name, frames)
    resolved = resolve_text(tree, columns, tuple(own_aggregators), check, functors)
    resolved = replace(resolved, program=replace(resolved.program, mode=mode))
    return Relations(spark, resolved, frames, {"backend": backend, "mode": mode}, own_aggregators, tree)


@dataclass(frozen=True)
class TextRelation:
    """A relation of a text and what its rows come from: what ``ra.why`` needs of it.

    ``inputs`` are the DataFrames by relation, in the text's columns; ``tree`` has the types of structures.
    """

    name: str
    resolved: Resolved
    inputs: Mapping[str, DataFrame]
    tree: Text


_ATTRIBUTE = "_paralagg_text_relation"


def text_relation_of(df: DataFrame) -> TextRelation | None:
    """Return the relation of a text that ``df`` is; None for any other DataFrame."""
    found: TextRelation | None = vars(df).get(_ATTRIBUTE)
    return found


class Relations(Mapping[str, "DataFrame"]):
    """The relations of a text: a mapping from name to lazy DataFrame.

    Iteration yields the text's ``.output`` relations, or all relations with rules if it has no ``.output``. Every
    relation can be looked up. A recursion that several relations need is cached when the second of them is looked up;
    one run computes all outputs of a mutual recursion, and its result is kept. ``unpersist`` frees both, as does the
    deletion of this object.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the results of the steps before
        self,
        spark: SparkSession,
        resolved: Resolved,
        inputs: Mapping[str, DataFrame],
        options: Mapping[str, Any],
        aggregators: Mapping[str, Any],
        tree: Text,
    ) -> None:
        from pyspark_paralagg.api.inputs import conform_input  # noqa: PLC0415 - pyspark is optional
        from pyspark_paralagg.api.strata import Strata  # noqa: PLC0415 - likewise

        self._resolved = resolved
        self._inputs = {
            s.relation: encoded(conform_input(inputs[s.relation], s, resolved), tree, s.relation)
            for s in resolved.sources
            if s.relation in inputs
        }
        self._strata = Strata(spark, resolved, self._inputs, options, aggregators)
        self._outputs = resolved.outputs
        self._tree = tree
        self._finalizer = weakref.finalize(self, self._strata.unpersist)

    def __getitem__(self, name: str) -> DataFrame:
        """Return the relation ``name``, with the text's columns."""
        df = decoded(self.encoded(name), self._tree, name)
        setattr(df, _ATTRIBUTE, TextRelation(name, self._resolved, self._inputs, self._tree))
        return df

    def encoded(self, name: str) -> DataFrame:
        """Return the relation ``name`` with records and branches as the engine has them."""
        self._check_name(name)
        try:
            return self._strata.frame(name)
        except (VerificationError, UnsupportedError, UsageError) as problem:
            raise self._strata.located(problem) from None

    def __contains__(self, name: object) -> bool:
        """Return whether the text has a relation ``name``."""
        return name in self._resolved.shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __repr__(self) -> str:
        """Return the relations and their columns."""
        relations = [f"{n}({', '.join(self._resolved.names(n))})" for n in self._outputs]
        return f"Relations({', '.join(relations)})"

    def layers(self, name: str, build: Callable[[Layer], Mapping[str, DataFrame]]) -> str | None:
        """Call ``build`` for each recursion that ``name`` needs, or return why it cannot: ``Strata.layers``."""
        self._check_name(name)
        return self._strata.layers(name, build)

    def columns(self, name: str) -> dict[str, str]:
        """Return the type of each column of ``name``, with the text's column names."""
        self._check_name(name)
        relation = self._resolved.program.relation(name)
        types = {c.name: c.type for c in relation.columns}
        types |= {t.name: trace_type(t.kind, [k.name for k in relation.keys], types) for t in relation.traces}
        return {c: types[c] for c in self._resolved.names(name)}

    def combined(self) -> list[Relation]:
        """Return the relations with user-defined aggregators, with the types that the engines use."""
        return self._strata.combined()

    @property
    def program(self) -> Any:  # noqa: ANN401 - a Program; its type is no public name
        """Return the Program of the text."""
        return self._resolved.program

    def unpersist(self) -> None:
        """Free the cache of shared recursions; relations can still be computed."""
        self._strata.unpersist()

    def _check_name(self, name: str) -> None:
        if name not in self._resolved.shapes:
            names = [n for n in self._resolved.shapes if not is_added(n)]
            raise UsageError(
                "PARALAGG_UNKNOWN_RELATION",
                f"the text has no relation {name!r}",
                value=name,
                hint=did_you_mean(name, names),
            )


def _check_inputs(resolved: Resolved, frames: Mapping[str, DataFrame]) -> None:
    """Check that every ``.input`` has a DataFrame, and every DataFrame a relation."""
    for relation in frames:
        if relation not in resolved.mentioned:
            names = [s.relation for s in resolved.sources if not is_added(s.relation) and s.relation not in frames]
            raise UsageError(
                "PARALAGG_DATALOG_INPUT",
                f"the text does not mention the relation {relation!r}",
                value=relation,
                place=f"input {relation}",
                hint=did_you_mean(
                    relation, names or [n for n in resolved.shapes if not is_added(n) and n not in frames]
                ),
            )
    for source in resolved.sources:
        if source.is_external and source.relation not in frames:
            span = resolved.input_spans.get(source.relation)
            message = f"`.input {source.relation}` has no DataFrame"
            hint = f"pass it: ra.datalog(spark, text, {source.relation}=df)"
            if span is None:
                raise UsageError("PARALAGG_DATALOG_INPUT", message, value=source.relation, hint=hint)
            raise resolved.places.error("PARALAGG_DATALOG_INPUT", message, span, value=source.relation, hint=hint)


def verify(resolved: Resolved) -> None:
    """Run the compiler, so that its errors are raised at the call and with their line.

    Errors that only Spark's analysis finds are raised when a relation is built.
    """
    from pyspark_paralagg.compile import PASSES  # noqa: PLC0415 - likewise
    from pyspark_paralagg.compile.rewrite.pack import pack  # noqa: PLC0415 - likewise

    program = pack(resolved.program)
    try:
        for run in PASSES:
            program = run(program)
    except UnsupportedError:
        return  # the choice of the executor decides whether an engine supports it
    except VerificationError as problem:
        if problem.code == "PARALAGG_NOT_PROVED":
            return  # Spark's analysis may prove it: it has the columns that are never null
        raise located(problem, resolved) from None


def located(problem: ParalaggError, resolved: Resolved) -> ParalaggError:
    """Return ``problem`` with the line of the rule that is its place."""
    span = resolved.spans.get(problem.place or "")
    return problem if span is None else resolved.places.located(problem, span)
