"""Whether a step only translates values, for the executor that has no plan: the compiler is asked when it matters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.backends.customs import Customs
from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError, VerificationError
from pyspark_paralagg.relations import struct_of
from pyspark_paralagg.report import is_connect
from pyspark_paralagg.session import bridge, reference

if TYPE_CHECKING:
    from pyspark_paralagg.backends.protocol import Job


def only_translates(job: Job) -> bool:
    """Return whether every stratum of ``job`` copies and shifts values, so that more rounds than keys never end.

    False where nobody can tell: over Spark Connect, without the jar, or with functions that the compiler cannot read.
    """
    if is_connect(job.seeds[0].base):
        return False
    from pyspark_paralagg.compile.compile_step import compile_step  # noqa: PLC0415 - only a long run needs it

    customs = Customs(job.session, [s.relation for s in job.seeds])
    try:
        steps = job.apply(
            {
                s.relation.name: reference(
                    job.session,
                    s.relation.name,
                    struct_of([(c.name, c.type) for c in s.relation.columns], s.base),
                )
                for s in job.seeds
            }
        )
        names, frames = _lists(job, {**steps, **customs.frames()})
        step_json = customs.read(json.loads(bridge(job.session).analyse(names, frames).json()))
        relations = [customs.filled(s.relation) for s in job.seeds]
        plan = compile_step(step_json, relations, mode="trust" if job.mode == "trust" else "auto").plan
    except (EnvironmentProblem, UnsupportedError, VerificationError):
        return False
    return all(s.cycle_check and s.climb_limit is None for s in plan.strata)


def _lists(job: Job, of: dict[str, Any]) -> tuple[Any, Any]:
    jvm: Any = job.session._jvm  # noqa: SLF001 - pyspark has no public way to the JVM
    names, frames = jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
    for name, df in of.items():
        names.add(name)
        frames.add(df._jdf)  # noqa: SLF001 - likewise
    return names, frames
