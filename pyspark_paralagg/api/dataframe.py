"""Define ``recursive_agg`` for one relation, and ``recursive`` for several relations that read each other.

First step of ``dataframe`` -> ``relations`` (checks) -> ``backends.choose`` -> an executor. The docstrings define the
arguments; ``docs/semantics.md`` explains them in detail.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from pyspark_paralagg.api.fitting import NarrowBaseError, widened
from pyspark_paralagg.api.relations import Aggregations, Keys, columns_of, conform, typed_relation
from pyspark_paralagg.api.routes import with_traces
from pyspark_paralagg.backends.choose import execute
from pyspark_paralagg.backends.protocol import Job, Seed, Step
from pyspark_paralagg.errors import UnsupportedError, UsageError
from pyspark_paralagg.program.assumption import parse_assumptions
from pyspark_paralagg.program.program import JoinOrder, Mode, Relation
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.program.traced import step_columns
from pyspark_paralagg.session.arguments import check_callable, check_dataframe, check_type
from pyspark_paralagg.session.conf import BACKENDS
from pyspark_paralagg.session.running import check_running, is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_paralagg.backends.kept import Keeping
    from pyspark_paralagg.program.question import Question

OnLimit = Literal["error", "return"]


def recursive_agg(  # noqa: PLR0913 - the arguments of the API, as the documentation has them
    base: DataFrame,
    keys: Keys,
    aggs: Aggregations = None,
    *,
    step: Callable[[DataFrame], DataFrame],
    initial: DataFrame | None = None,
    name: str | None = None,
    mode: Mode = "auto",
    assume: str | Sequence[str] | None = None,
    max_iterations: int | None = None,
    on_limit: OnLimit = "error",
    tolerance: float | None = None,
    join_order: JoinOrder = "cost",
    backend: str | None = None,
) -> DataFrame:
    """Apply ``step`` to ``base`` and to its own results until no row changes, and aggregate by ``keys``; lazy.

    With base rows C, initial rows X (default C) and step F: ``R0 = agg(X)``, ``R(i+1) = agg(C + F(Ri))``, where + is
    the union of all rows. The result is the fixpoint: the columns of ``keys`` in that order, then those of ``aggs``.

    >>> dist = sources.recursive_agg(                                                     # doctest: +SKIP
    ...     keys="node", aggs={"dist": "min"},
    ...     step=lambda d: d.join(edges, d.node == edges.src)
    ...         .select(edges.dst.alias("node"), (d.dist + edges.weight).alias("dist")))

    keys
        The column names that identify a row: one name or several. ``[]`` makes a relation of one row. Case matters
        only with ``spark.sql.caseSensitive``. A column gets the wider type of base and step if that loses no value, as
        in ``UNION``: ``SELECT 1 AS node`` becomes ``bigint`` where the step returns it so.
    aggs
        Every non-key column of the base with its aggregate: ``"min" "max" "sum" "count" "any" "all" "bit_or" "bit_and"
        "gcd"``, ``ra.min_by("dist")``, ``ra.max_by("gain")``, or your own (``ra.aggregator``). None: a set of keys.
        ``count`` counts a row without a value as 1. Integers are summed as ``bigint``, floats as ``double``, decimals
        in their own type. ``{"n": ra.mcount("who")}`` and ``{"total": ra.msum("share", "who")}`` compute a column from
        others (who, share), which base and step have and the relation does not show. ``{"route": ra.path("dist")}`` and
        ``{"legs": ra.hops("dist")}`` return the way to each row, which neither base nor step has.
    step
        Receives the relation as a DataFrame and returns one with the same columns, by name. It may use the relation
        several times, join it with other DataFrames, filter, union, and aggregate as declared. It must return the same
        rows for the same input: it is called once (Spark engine) or once an iteration (plain DataFrames).
    initial
        The rows of the start, if they differ from the base (PageRank from 1/n). The base is part of every iteration.
    mode
        ``"auto"`` evaluates semi-naively if that is proven right, and raises ``VerificationError`` with the reason if
        not, or ``UnsupportedError`` if the compiler does not understand the step. ``"trust"`` also accepts a step that
        is neither proved nor refuted. ``"iterate"`` recomputes every iteration, needs no proof, and runs any step.
    assume
        Conditions on columns that the step joins with, such as ``"w >= 0"``, or ``"roads.w >= 0"`` for those of the
        alias ``roads`` alone. The proof may use them. They are checked when the rows are loaded:
        ``PARALAGG_ASSUMPTION_VIOLATED``. Plain DataFrames, which recompute every iteration, do not check them.
    max_iterations, on_limit
        An iteration applies the whole step once. If the last allowed iteration still changes a row, ``"error"`` raises
        ``PARALAGG_LIMIT_REACHED``, and ``"return"`` returns the rows so far: three hops, twenty rounds. (With
        ``"error"`` the Spark engine counts the iterations of each group of mutually recursive relations separately.)
    tolerance
        Ends the run when the sum of the absolute changes over keys and ``sum``/``count`` columns falls below it.
    join_order
        ``"cost"``: the Spark engine joins connected inputs first, and among them those with the fewest expected rows.
        ``"written"``: each branch of the step joins in its own order; ``{"r": [2]}``: only the second branch of ``r``.
    backend
        ``"auto"``, ``"spark"``, ``"dataframe"``, ``"mpi"``, ``"local"``; default: ``spark.paralagg.backend``. The
        DataFrame executor is **eager**: it runs at the call, iteration by iteration, and logs why it was chosen.
        ``"mpi"`` runs when the result is read: it writes the inputs to files, runs MPI ranks (``spark.paralagg.mpi.*``)
        and reads their result. ``"local"`` does the same in one process without MPI.

    A wrong call raises ``UsageError`` at once. The result has no order of rows, and the last digits of a sum of doubles
    may vary. Messages call keys independent and aggregated columns dependent, as Sun et al. 2023 do.
    """
    name = _named(name, "r")
    check_callable("step", step, _STEP)
    declared = {name: relation(base, keys=keys, aggs=aggs, initial=initial)}
    options = _Options(mode, assume, max_iterations, on_limit, tolerance, join_order, backend)
    return _run(name, declared, lambda state: {name: step(state[name])}, options)[name]


@dataclass(frozen=True)
class Declaration:
    """A relation of a mutual recursion, not yet checked; ``ra.relation`` returns it.

    ``settled``: ``initial`` is the fixpoint without ``base``; the result is the rows that ``base`` changes
    (``ra.delta``). ``is_output``: several queries read the relation, so a run for another one computes it, too.
    ``functors`` are the functors of a text that the step calls on rows of the recursion.
    ``max_rows``: the relation is a set, and ends after the iteration that has so many rows (``.limitsize``).
    ``keeping``: the Spark engine keeps the state of this settled relation for a later run.
    """

    base: DataFrame
    keys: Keys
    aggs: Aggregations = None
    initial: DataFrame | None = None
    settled: bool = False
    is_output: bool = False
    functors: tuple[str, ...] = ()
    max_rows: int | None = None
    keeping: Keeping | None = None

    def widened(self, types: Mapping[str, str]) -> Declaration:
        """Return the relation with columns of wider types."""
        return replace(self, base=widened(self.base, types), initial=self.initial and widened(self.initial, types))


def relation(
    base: DataFrame, *, keys: Keys, aggs: Aggregations = None, initial: DataFrame | None = None
) -> Declaration:
    """Declare one relation of :func:`recursive`; the arguments are those of :func:`recursive_agg`."""
    return Declaration(base, keys, aggs, initial)


def recursive(  # noqa: PLR0913 - the arguments of the API, as the documentation has them
    relations: Mapping[str, Declaration],
    step: Callable[..., Mapping[str, DataFrame]],
    *,
    name: str | None = None,
    mode: Mode = "auto",
    assume: str | Sequence[str] | None = None,
    max_iterations: int | None = None,
    on_limit: OnLimit = "error",
    tolerance: float | None = None,
    join_order: JoinOrder = "cost",
    backend: str | None = None,
) -> dict[str, DataFrame]:
    """Compute the fixpoint of several relations that may read each other; return the result of each, by name.

    ``step`` receives the relations by the names of its parameters and returns one DataFrame for each relation. All
    else is as in :func:`recursive_agg`.

    >>> r = ra.recursive(                                                                 # doctest: +SKIP
    ...     {"rank": ra.relation(base, keys="node", aggs={"rank": "sum"}),
    ...      "dangling": ra.relation(none, keys=[], aggs={"mass": "sum"})},
    ...     step=lambda rank, dangling: {"rank": ..., "dangling": ...}, max_iterations=20, on_limit="return")
    """
    if not relations:
        raise UsageError("PARALAGG_BAD_OPTION", "ra.recursive needs at least one relation", value=relations)
    check_callable("step", step, _STEP)
    for key, declaration in relations.items():
        if not isinstance(declaration, Declaration):
            raise UsageError(
                "PARALAGG_BAD_OPTION",
                f"the relation {key!r} is a {type(declaration).__name__}, not a result of ra.relation",
                value=declaration,
                hint=f"write {{{key!r}: ra.relation(base, keys=..., aggs=...)}}",
            )
    parameters = _parameters(step, relations)

    def apply(state: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        result = step(**{p: state[p] for p in parameters})
        _check_names(result, relations)
        return result

    options = _Options(mode, assume, max_iterations, on_limit, tolerance, join_order, backend)
    return _run(_named(name, "_".join(relations)), relations, apply, options)


@dataclass(frozen=True)
class _Options:
    """The options of a call, not yet checked."""

    mode: Mode
    assume: str | Sequence[str] | None
    max_iterations: int | None
    on_limit: OnLimit
    tolerance: float | None
    join_order: JoinOrder
    backend: str | None


@dataclass(frozen=True)
class Recursion:
    """A call whose arguments are checked, which ``ra.why`` runs again with a question.

    Over Spark Connect it has the analysed step in ``analysis``, and not the step.
    """

    name: str
    declared: Mapping[str, Declaration]
    step: Callable[[Mapping[str, DataFrame]], Mapping[str, DataFrame]]
    options: _Options
    analysis: list[Any] | None = None

    def ask(self, question: Question) -> DataFrame:
        """Return the answer to ``question``; lazy. Raises ``UnsupportedError`` if no engine runs the step."""
        return _run(self.name, self.declared, self.step, self.options, question, self.analysis)[question.name]


_STEP = "pass a function of the relation's DataFrame: step=lambda r: r.join(...).select(...)"
_ATTRIBUTE = "_paralagg_recursion"


def recursion_of(df: DataFrame) -> tuple[str, Recursion] | None:
    """Return the relation and the call whose result ``df`` is; None for any other DataFrame."""
    found: tuple[str, Recursion] | Callable[[], DataFrame] | None = vars(df).get(_ATTRIBUTE)
    return recursion_of(found()) if callable(found) else found


def explain_as(df: DataFrame, result: Callable[[], DataFrame]) -> None:
    """Let ``ra.why`` explain the rows of ``df`` as those of ``result()``, a recursion with the same rows."""
    setattr(df, _ATTRIBUTE, result)


def _step_is_gone(_: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    message = "over Spark Connect, a result on plain DataFrames does not keep its step"
    raise UnsupportedError("PARALAGG_WHY_UNSUPPORTED", message, value="Spark Connect", hint="ask in a classic session")


def _run(  # noqa: PLR0913, PLR0917 - a call, and what a question adds to it
    name: str,
    declared: Mapping[str, Declaration],
    step: Callable[[Mapping[str, DataFrame]], Mapping[str, DataFrame]],
    options: _Options,
    question: Question | None = None,
    analysis: list[Any] | None = None,
) -> dict[str, DataFrame]:
    """Check all arguments and execute; again with a wider base if the step or initial rows have wider types."""
    try:
        seeds = tuple(_seed(key, declaration, 2 * n) for n, (key, declaration) in enumerate(declared.items()))

        def conformed(step: Callable[[Mapping[str, DataFrame]], Mapping[str, DataFrame]]) -> Step:
            def apply(state: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
                result = step(state)
                return {s.relation.name: _conform_result(result[s.relation.name], s.relation) for s in seeds}

            return apply

        apply = conformed(step)
        outputs = tuple(key for key, declaration in declared.items() if declaration.is_output)
        functors = tuple(f for declaration in declared.values() for f in declaration.functors)
        max_rows = next((d.max_rows for d in declared.values() if d.max_rows is not None), None)
        keeping = next((d.keeping for d in declared.values() if d.keeping is not None), None)
        spark = seeds[0].base.sparkSession
        job = Job(name, spark, seeds, apply, together=outputs, question=question, functors=functors, max_rows=max_rows)
        job = replace(_with_options(job, options), keeping=keeping, analysis=analysis or [])
        if keeping is not None and keeping.falls is not None:
            job = replace(job, removed=conformed(keeping.falls.removed))
        results = execute(job, _check_backend(options.backend))
    except NarrowBaseError as narrow:
        declared = {**declared, narrow.relation: declared[narrow.relation].widened(narrow.types)}
        return _run(name, declared, step, options, question)
    for relation in (s.relation for s in seeds if s.relation.traces):
        columns = [k.name for k in relation.keys] + _columns(declared[relation.name].aggs)
        results[relation.name] = with_traces(results[relation.name], relation, columns)
    # The step may read a variable that holds the result. Over Spark Connect such a cycle would keep checkpoints until
    # Python ends, and pyspark then waits for ever when it frees them. So there the analysed step stands for it.
    recursion = Recursion(name, declared, step, options)
    if is_connect(spark):
        recursion = replace(recursion, step=_step_is_gone, analysis=job.analysis)
    for key in declared:
        setattr(results[key], _ATTRIBUTE, (key, recursion))
    return results


def _seed(name: str, declaration: Declaration, input_id: int) -> Seed:
    """Check a declaration. Inputs ``input_id`` and ``input_id + 1`` are its base and its initial rows."""
    place = f"relation {name}"
    for argument, value in (("base", declaration.base), ("initial", declaration.initial)):
        if argument == "base" or value is not None:
            check_dataframe(argument, value, place)
    check_running(declaration.base.sparkSession)
    typed = typed_relation(name, declaration.base, declaration.keys, declaration.aggs, input_id)
    base = conform(declaration.base, typed, place, is_base=True)
    if declaration.initial is None:
        return Seed(typed, base)
    try:
        initial = conform(declaration.initial, typed, f"initial of {name}", owner="initial", is_base=True)
    except UsageError as problem:
        raise UsageError(
            "PARALAGG_INITIAL_SCHEMA",
            problem.message,
            value=problem.value,
            place=place,
            hint="give initial the columns of the base: "
            + ", ".join(f"{n} {t}" for n, t in columns_of(declaration.base)),
        ) from None
    return Seed(replace(typed, initial=input_id + 1, settled=declaration.settled), base, initial)


def _named(name: str | None, default: str) -> str:
    check_type("name", name or default, str, 'a text, such as name="dist"')
    return name or default


def _columns(aggs: Aggregations) -> list[str]:
    """Return the aggregated columns, in the order of the call."""
    return [c for name in aggs or {} for c in ((name,) if isinstance(name, str) else name)]


def _conform_result(result: DataFrame, relation: Relation) -> DataFrame:
    argument, place = f"the step's result for {relation.name!r}", f"step of {relation.name}"
    check_dataframe(argument, result, place, "PARALAGG_STEP_RESULT")
    shown = step_columns(relation)
    for name in shown:
        if name.lower() not in [c.lower() for c in result.columns]:
            raise UsageError(
                "PARALAGG_PATH",
                f"a path shows {name!r}, which neither the relation nor the step has",
                value=name,
                place=f"step of {relation.name}",
                hint=f"select it in the step, or show some of {', '.join(c.name for c in relation.columns)}",
            )
    return conform(result, relation, shown=shown)


def _check_names(result: Any, relations: Mapping[str, Declaration]) -> None:  # noqa: ANN401 - anything
    if not isinstance(result, Mapping):
        raise UsageError(
            "PARALAGG_STEP_RESULT",
            f"the step returned a {type(result).__name__}, not a dict of DataFrames",
            value=result,
            place="step",
            hint="return {" + ", ".join(f"{r!r}: ..." for r in relations) + "}",
        )
    for name in (*relations, *result):
        if name not in result or name not in relations:
            problem = "no rows for" if name in relations else "rows for the unknown relation"
            raise UsageError(
                "PARALAGG_STEP_RESULT",
                f"the step returned {problem} {name!r}",
                value=name,
                place="step",
                hint="return {" + ", ".join(f"{r!r}: ..." for r in relations) + "}",
            )


def _parameters(step: Callable[..., object], relations: Mapping[str, Declaration]) -> tuple[str, ...]:
    """Return the relations that ``step`` receives, by the names of its parameters."""
    required = [p for p in inspect.signature(step).parameters.values() if p.default is inspect.Parameter.empty]
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in required):
        return tuple(relations)
    for p in required:
        if p.name not in relations or p.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise UsageError(
                "PARALAGG_STEP_PARAMETERS",
                f"the step's parameter {p.name!r} is not the name of a relation",
                value=p.name,
                place="step",
                hint=did_you_mean(p.name, relations),
            )
    return tuple(p.name for p in required)


def _with_options(job: Job, options: _Options) -> Job:
    mode, on_limit, join_order = options.mode, options.on_limit, options.join_order
    max_iterations, tolerance = options.max_iterations, options.tolerance
    if mode not in get_args(Mode):
        raise _bad_option("mode", mode, f"one of {', '.join(get_args(Mode))}")
    if on_limit not in get_args(OnLimit):
        raise _bad_option("on_limit", on_limit, f"one of {', '.join(get_args(OnLimit))}")
    if max_iterations is not None and (not _is_number(max_iterations, int) or max_iterations < 1):
        raise _bad_option("max_iterations", max_iterations, "a whole number of at least 1, or None for no limit")
    if tolerance is not None:
        if not _is_number(tolerance, int | float) or not tolerance > 0:
            raise _bad_option("tolerance", tolerance, "a number greater than 0, or None for an exact fixpoint")
        if not any(seed.accumulating for seed in job.seeds):
            raise _bad_option("tolerance", tolerance, "None: only sum and count columns use it")
    relations = {seed.relation.name for seed in job.seeds}
    if join_order not in ("cost", "written") and not (
        isinstance(join_order, Mapping) and join_order.keys() <= relations
    ):
        raise _bad_option("join_order", join_order, '"cost", "written", or the branches of a relation: {"r": [1]}')
    return replace(
        job,
        mode=mode,
        join_order=join_order,
        assume=parse_assumptions(options.assume),
        max_iterations=max_iterations,
        on_limit=on_limit,
        tolerance=None if tolerance is None else float(tolerance),
    )


def _check_backend(backend: str | None) -> str | None:
    if backend is not None and backend not in BACKENDS:
        raise _bad_option("backend", backend, f"one of {', '.join(BACKENDS)}")
    return backend


def _bad_option(option: str, value: object, expected: str) -> UsageError:
    hint = f"set {option} to {expected}"
    return UsageError("PARALAGG_BAD_OPTION", f"{option}={value!r} is not valid", value=value, place=option, hint=hint)


def _is_number(value: object, kind: Any) -> bool:  # noqa: ANN401 - a type or a union of types
    return isinstance(value, kind) and not isinstance(value, bool)
