"""Compile an analysed job with the options of its call and of its session: the same Plan for all engines.

``check_proof`` only proves the step, for plain DataFrames: what no compiler understands is refused there, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.backends.analysed import analysed, analyser_of
from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_paralagg.backends.protocol import Job
    from pyspark_paralagg.compile.compile_step import CompiledStep
    from pyspark_paralagg.program.program import Relation


def compiled_job(
    job: Job, step_json: dict[str, Any], relations: Sequence[Relation], *, packs: bool = False
) -> CompiledStep:
    """Return the Plan of ``job``; ``relations`` have their analysed aggregators. Raises as ``compile_step``."""
    from pyspark_paralagg.compile.compile_step import compile_step  # noqa: PLC0415 - only planning needs it

    return compile_step(
        step_json,
        relations,
        conf.read(job.session, conf.BROADCAST_MAX_BYTES),
        job.join_order,
        None if job.question is None else job.question.rewrite,
        packs=packs,
        present=_present(job),
        **_options(job),
    )


def check_proof(job: Job) -> None:
    """Raise ``VerificationError`` or ``UnsupportedError`` if the mode of ``job`` asks for a proof that there is not.

    ``mode="trust"`` needs no proof of a step that the compiler does not understand, unless its values are random.
    Recursions that call functors are rules of a text, which is proved as a whole.
    """
    from pyspark_paralagg.compile.compile_step import prove_step  # noqa: PLC0415 - only planning needs it

    if job.mode == "iterate" or job.functors:
        return
    try:
        found = analysed(job, analyser_of(job.session))
        # Strata of one limit have no common state, but the definition has, and a proof needs no limit.
        options = {**_options(job), "max_iterations": None}
        prove_step(found.json, found.relations, _present(job), **options)
    except UnsupportedError as problem:
        if job.mode == "auto" or problem.code == "PARALAGG_NONDETERMINISTIC":
            raise
    except EnvironmentProblem as problem:
        if job.mode == "auto":
            hint = "; ".join(
                filter(None, (problem.hint, 'or use mode="iterate", which proves nothing and needs no jar'))
            )
            message = f"{problem.message}, so nothing proves the step"
            raise EnvironmentProblem(problem.code, message, value=problem.value, hint=hint) from problem


def _options(job: Job) -> dict[str, Any]:
    """Return the fields of the Program that the call and the session set."""
    return {
        "name": job.name,
        "mode": job.mode,
        "assume": job.assume,
        "max_iterations": job.max_iterations,
        "on_limit": job.on_limit,
        "tolerance": job.tolerance,
        "climb_limit": conf.read(job.session, conf.CLIMB_MAX_ITERATIONS),
        "max_rows": job.max_rows,
    }


def _present(job: Job) -> dict[int, list[str]]:
    """Return the columns without nulls of each base and of initial rows, as Spark's analysis knows them."""
    starts = [(n, rows) for s in job.seeds for n, rows in ((s.relation.base, s.base), (s.relation.initial, s.initial))]
    return {
        number: [field.name for field in rows.schema.fields if not field.nullable]
        for number, rows in starts
        if number is not None and rows is not None
    }
