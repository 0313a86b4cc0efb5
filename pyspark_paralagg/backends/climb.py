"""Decide whether a step only shifts values, for the DataFrame executor, which has no plan; compiles on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError, VerificationError

if TYPE_CHECKING:
    from pyspark_paralagg.backends.protocol import Job


def only_translates(job: Job) -> bool:
    """Return whether every stratum of ``job`` only copies and shifts values: more rounds than keys then never end.

    Return False if it is unknown: without the jar, or with functions unknown to the compiler.
    """
    from pyspark_paralagg.backends.analysed import analysed, analyser_of  # noqa: PLC0415 - only a long run needs it
    from pyspark_paralagg.compile.compile_step import compile_step  # noqa: PLC0415 - as above

    try:
        found = analysed(job, analyser_of(job.session))
        plan = compile_step(found.json, found.relations, mode="trust" if job.mode == "trust" else "auto").plan
    except (EnvironmentProblem, UnsupportedError, VerificationError):
        return False
    return all(s.cycle_check and s.climb_limit is None for s in plan.strata)
