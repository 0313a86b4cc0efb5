"""Decide whether a step only shifts values, for the DataFrame executor, which has no plan; compiles on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.backends.customs import Customs
from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError, VerificationError
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from pyspark_paralagg.backends.protocol import Job


def only_translates(job: Job) -> bool:
    """Return whether every stratum of ``job`` only copies and shifts values: more rounds than keys then never end.

    Return False if it is unknown: over Spark Connect, without the jar, or with functions unknown to the compiler.
    """
    if is_connect(job.seeds[0].base):
        return False
    from pyspark_paralagg.backends.spark import analyse  # noqa: PLC0415 - only a long run needs it
    from pyspark_paralagg.compile.compile_step import compile_step  # noqa: PLC0415 - as above

    customs = Customs(job.session, [s.relation for s in job.seeds])
    try:
        _, step_json = analyse(job, customs)
        relations = [customs.filled(s.relation) for s in job.seeds]
        plan = compile_step(step_json, relations, mode="trust" if job.mode == "trust" else "auto").plan
    except (EnvironmentProblem, UnsupportedError, VerificationError):
        return False
    return all(s.cycle_check and s.climb_limit is None for s in plan.strata)
