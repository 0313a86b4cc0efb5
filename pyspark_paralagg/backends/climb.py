"""Whether a step only translates values, for the executor that has no plan: the compiler is asked when it matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.backends.customs import Customs
from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError, VerificationError
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from pyspark_paralagg.backends.protocol import Job


def only_translates(job: Job) -> bool:
    """Return whether every stratum of ``job`` copies and shifts values, so that more rounds than keys never end.

    False where nobody can tell: over Spark Connect, without the jar, or with functions that the compiler cannot read.
    """
    if is_connect(job.seeds[0].base):
        return False
    from pyspark_paralagg.backends.spark import analyse  # noqa: PLC0415 - only a long run needs it
    from pyspark_paralagg.compile.compile_step import compile_step  # noqa: PLC0415 - likewise

    customs = Customs(job.session, [s.relation for s in job.seeds])
    try:
        _, step_json = analyse(job, customs)
        relations = [customs.filled(s.relation) for s in job.seeds]
        plan = compile_step(step_json, relations, mode="trust" if job.mode == "trust" else "auto").plan
    except (EnvironmentProblem, UnsupportedError, VerificationError):
        return False
    return all(s.cycle_check and s.climb_limit is None for s in plan.strata)
