"""The API: ``recursive_agg`` for one relation, ``recursive`` for several that read each other.

First link of ``dataframe`` -> ``relations`` (checks) -> ``backends.choose`` -> an executor. What the arguments mean is
said here once; ``docs/semantics.md`` says it at length.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from pyspark_paralagg.api.arguments import not_a_dataframe, type_name
from pyspark_paralagg.api.relations import Aggregations, Keys, columns_of, conform, typed_relation
from pyspark_paralagg.backends.choose import execute
from pyspark_paralagg.backends.protocol import Job, Seed
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.assumption import parse_assumptions
from pyspark_paralagg.program.program import JoinOrder, Mode, Relation
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.session.conf import BACKENDS
from pyspark_paralagg.session.running import check_running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    """Rows of ``base``, and of ``step`` applied to the result again and again, aggregated by ``keys``; lazy.

    With base rows C, initial rows X (default C) and step F: ``R0 = agg(X)``, ``R(i+1) = agg(C + F(Ri))``, where + puts
    rows together. The result is the fixpoint: the columns of ``keys`` in that order, then those of ``aggs``.

    >>> dist = sources.recursive_agg(                                                     # doctest: +SKIP
    ...     keys="node", aggs={"dist": "min"},
    ...     step=lambda d: d.join(edges, d.node == edges.src)
    ...         .select(edges.dst.alias("node"), (d.dist + edges.weight).alias("dist")))

    keys
        A column name or several; none at all (``[]``) makes a relation of one row.
    aggs
        Each other column of the base with its aggregate: ``"min" "max" "sum" "count" "any" "all" "bit_or" "bit_and"
        "gcd"``, ``ra.min_by("dist")``, ``ra.max_by("gain")``, one of your own (``ra.aggregator``). None: a set of keys.
        ``count`` counts a row as 1 where it has no value. Integers are summed as ``bigint``, floats as
        ``double``, decimals in their own type. ``{"n": ra.mcount("who")}`` and ``{"total": ra.msum("share", "who")}``
        make a column out of others (who, share), which base and step have and the relation does not show.
    step
        Receives the relation as a DataFrame and returns one with the same columns, by name. It may use it several
        times, join it with other DataFrames, filter, union, aggregate as declared. It should return the same for the
        same rows: it may be called once (Spark engine) or once an iteration (plain DataFrames).
    initial
        Rows of the start, where they are not the base (PageRank from 1/n). The base belongs to every round.
    mode
        ``"auto"``: semi-naive where that is proven right, refused with the reason (``VerificationError``) where it is
        not. ``"trust"`` takes your word where the proof is open, ``"iterate"`` recomputes every round and needs no
        proof.
    assume
        Conditions on columns that the step joins with, which the proof may use: ``"w >= 0"``. They are checked when the
        rows are loaded: ``PARALAGG_ASSUMPTION_VIOLATED``. Plain DataFrames need no proof and do not check them.
    max_iterations, on_limit
        An iteration applies the whole step once. If the last one allowed still changed something: ``"error"`` raises
        ``PARALAGG_LIMIT_REACHED``, ``"return"`` gives what three hops, twenty rounds give. (With ``"error"`` the Spark
        engine counts the iterations of each group of mutually recursive relations by itself.)
    tolerance
        Ends the run when the sum of the absolute changes over keys and ``sum``/``count`` columns falls below it.
    join_order
        ``"cost"``: the Spark engine joins what is connected first, then what it expects fewer rows of.
        ``"written"``: each branch of the step joins as it stands there; ``{"r": [2]}``: only the second one of ``r``.
    backend
        ``"auto"``, ``"spark"``, ``"dataframe"``, ``"mpi"``, ``"local"``; default: ``spark.paralagg.backend``. The
        DataFrame executor is **eager**: it runs at the call, iteration by iteration, and logs why it was taken.
        ``"mpi"`` writes the inputs to files, runs MPI ranks (``spark.paralagg.mpi.*``) and reads what they found, when
        the result is wanted; ``"local"`` is the same with one process and no MPI.

    A wrong call raises ``UsageError`` at once. What it does not do: keep the order of rows, or promise the last
    digits of a sum of doubles. Sun et al. 2023 call keys independent and aggregated columns dependent, and so do the
    messages.
    """
    name = name or "r"
    _check_step(step)
    seed = _seed(name, relation(base, keys=keys, aggs=aggs, initial=initial), 0)

    def apply(state: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        return {name: _conformed(step(state[name]), seed.relation)}

    job = Job(name, base.sparkSession, (seed,), apply)
    job = _with_options(job, mode, assume, max_iterations, on_limit, tolerance, join_order)
    return execute(job, _checked_backend(backend))[name]


@dataclass(frozen=True)
class Declaration:
    """What ``ra.relation`` returns: a relation of a mutual recursion, not yet checked.

    ``settled``: ``initial`` is the fixpoint without ``base``; the result is what ``base`` changes (``ra.delta``).
    """

    base: DataFrame
    keys: Keys
    aggs: Aggregations = None
    initial: DataFrame | None = None
    settled: bool = False


def relation(
    base: DataFrame, *, keys: Keys, aggs: Aggregations = None, initial: DataFrame | None = None
) -> Declaration:
    """One relation of :func:`recursive`; the arguments are those of :func:`recursive_agg`."""
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
    """Several relations that may read each other; the result of each, by name.

    ``step`` receives the relations by the names of its parameters and returns one DataFrame a relation. Everything
    else is as in :func:`recursive_agg`.

    >>> r = ra.recursive(                                                                 # doctest: +SKIP
    ...     {"rank": ra.relation(base, keys="node", aggs={"rank": "sum"}),
    ...      "dangling": ra.relation(none, keys=[], aggs={"mass": "sum"})},
    ...     step=lambda rank, dangling: {"rank": ..., "dangling": ...}, max_iterations=20, on_limit="return")
    """
    if not relations:
        raise UsageError("PARALAGG_BAD_OPTION", "recursive needs at least one relation", value=relations)
    _check_step(step)
    seeds: list[Seed] = []
    for key, declaration in relations.items():
        if not isinstance(declaration, Declaration):
            raise UsageError(
                "PARALAGG_BAD_OPTION",
                f"the relation {key!r} is a {type(declaration).__name__}",
                value=declaration,
                hint=f"write {{{key!r}: ra.relation(base, keys=..., aggs=...)}}",
            )
        seeds.append(_seed(key, declaration, 2 * len(seeds)))
    parameters = _parameters(step, relations)

    def apply(state: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        result = step(**{p: state[p] for p in parameters})
        _check_names(result, relations)
        return {s.relation.name: _conformed(result[s.relation.name], s.relation) for s in seeds}

    job = Job(name or "_".join(relations), seeds[0].base.sparkSession, tuple(seeds), apply)
    job = _with_options(job, mode, assume, max_iterations, on_limit, tolerance, join_order)
    return execute(job, _checked_backend(backend))


def _seed(name: str, declaration: Declaration, input_id: int) -> Seed:
    """Checks a declaration. Inputs ``input_id`` and ``input_id + 1`` are its base and its initial rows."""
    place = f"relation {name}"
    for argument, value in (("base", declaration.base), ("initial", declaration.initial)):
        if not _is_dataframe(value) and not (argument == "initial" and value is None):
            raise not_a_dataframe(argument, value, place)
    check_running(declaration.base.sparkSession)
    typed = typed_relation(name, declaration.base, declaration.keys, declaration.aggs, input_id)
    base = conform(declaration.base, typed, place)
    if declaration.initial is None:
        return Seed(typed, base)
    try:
        initial = conform(declaration.initial, typed, f"initial of {name}")
    except UsageError as problem:
        raise UsageError(
            "PARALAGG_INITIAL_SCHEMA",
            problem.message.replace("the step's result", "initial").replace("the step's", "initial's"),
            value=problem.value,
            place=place,
            hint="initial has the columns of the base: "
            + ", ".join(f"{n} {t}" for n, t in columns_of(declaration.base)),
        ) from None
    return Seed(replace(typed, initial=input_id + 1, settled=declaration.settled), base, initial)


def _check_step(step: object) -> None:
    if not callable(step):
        hint = "step is a function of the relation's DataFrame: step=lambda r: r.join(...).select(...)"
        raise UsageError("PARALAGG_BAD_OPTION", f"step is a {type_name(step)}", value=step, place="step", hint=hint)


def _conformed(result: DataFrame, of: Relation) -> DataFrame:
    if not _is_dataframe(result):
        what = f"what the step returned for {of.name!r}"
        raise not_a_dataframe(what, result, f"step of {of.name}", "PARALAGG_STEP_RESULT")
    return conform(result, of)


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
            what = "no rows for" if name in relations else "rows for the unknown relation"
            raise UsageError(
                "PARALAGG_STEP_RESULT",
                f"the step returned {what} {name!r}",
                value=name,
                place="step",
                hint="return {" + ", ".join(f"{r!r}: ..." for r in relations) + "}",
            )


def _parameters(step: Callable[..., object], relations: Mapping[str, Declaration]) -> tuple[str, ...]:
    """Which relations ``step`` wants, by the names of its parameters."""
    named = [p for p in inspect.signature(step).parameters.values() if p.default is inspect.Parameter.empty]
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in named):
        return tuple(relations)
    for p in named:
        if p.name not in relations or p.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise UsageError(
                "PARALAGG_STEP_PARAMETERS",
                f"the step's parameter {p.name!r} is not the name of a relation",
                value=p.name,
                place="step",
                hint=did_you_mean(p.name, relations),
            )
    return tuple(p.name for p in named)


def _with_options(  # noqa: PLR0913, PLR0917 - one check an option
    job: Job,
    mode: Mode,
    assume: str | Sequence[str] | None,
    max_iterations: int | None,
    on_limit: OnLimit,
    tolerance: float | None,
    join_order: JoinOrder,
) -> Job:
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
            raise _bad_option("tolerance", tolerance, "for sum and count columns; the others end exactly without it")
    relations = {seed.relation.name for seed in job.seeds}
    if join_order not in ("cost", "written") and not (
        isinstance(join_order, Mapping) and join_order.keys() <= relations
    ):
        raise _bad_option("join_order", join_order, '"cost", "written", or the branches of a relation: {"r": [1]}')
    return replace(
        job,
        mode=mode,
        join_order=join_order,
        assume=parse_assumptions(assume),
        max_iterations=max_iterations,
        on_limit=on_limit,
        tolerance=None if tolerance is None else float(tolerance),
    )


def _checked_backend(backend: str | None) -> str | None:
    if backend is not None and backend not in BACKENDS:
        raise _bad_option("backend", backend, f"one of {', '.join(BACKENDS)}")
    return backend


def _bad_option(option: str, value: object, is_what: str) -> UsageError:
    hint = f"{option} is {is_what}"
    return UsageError("PARALAGG_BAD_OPTION", f"{option}={value!r}", value=value, place=option, hint=hint)


def _is_number(value: object, kind: Any) -> bool:  # noqa: ANN401 - a type or a union of types
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_dataframe(value: object) -> bool:
    from pyspark.sql import DataFrame  # noqa: PLC0415 - this module loads without pyspark

    return isinstance(value, DataFrame)
