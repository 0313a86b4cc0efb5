"""Program -> Plan. Each pass is ``Program -> Program``, one file, named by a verb; ``PASSES`` is their order.

    track_witnesses  mcount and msum count the rows of relations of their own
    stratify      what is mutually recursive is one fixpoint, what it needs comes before it
    drive_static  a rule without a recursive atom gets one to start from
    simplify      conditions that say nothing go, those about one input become its filters
    hoist         what an input can compute at load leaves the loop
    place_semi    semi and anti joins are lookups of equal columns
    prune         columns that nobody reads go
    check_types   what the loop has no words for is refused
    verify        each stratum gets its class, by proof
    limit_growth  keys that may grow for ever get a limit

and then ``plan`` builds the physical form:

    differentiate     a Δ variant for each recursive atom of a rule
    binarize          each a linear chain of binary joins, in the order of order_joins
    distribute        by which keys each relation lies
    select_indexes    one index for each set of join columns
    assign_placement  where each probe finds its rows

``stages`` shows all of them as text.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.physical.plan import BROADCAST_MAX_BYTES, plan
from pyspark_paralagg.compile.prove.verify import verify
from pyspark_paralagg.compile.rewrite.check_types import check_types
from pyspark_paralagg.compile.rewrite.drive_static import drive_static
from pyspark_paralagg.compile.rewrite.hoist import hoist
from pyspark_paralagg.compile.rewrite.limit_growth import limit_growth
from pyspark_paralagg.compile.rewrite.place_semi import place_semi
from pyspark_paralagg.compile.rewrite.prune import prune
from pyspark_paralagg.compile.rewrite.simplify import simplify
from pyspark_paralagg.compile.rewrite.stratify import stratify
from pyspark_paralagg.compile.rewrite.track_witnesses import track_witnesses
from pyspark_paralagg.compile.stages import Stage, after_pass, of_plan

logger = logging.getLogger("pyspark_paralagg")

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.program.program import Program

PASSES: tuple[Callable[[Program], Program], ...] = (
    track_witnesses,
    stratify,
    drive_static,
    simplify,
    hoist,
    place_semi,
    prune,
    check_types,
    verify,
    limit_growth,
)


STAGES = (*(run.__name__ for run in PASSES), "differentiate", "binarize", "select_indexes", "assign_placement", "plan")
"""The names of all stages, in their order."""


def compile_program(program: Program, broadcast_max_bytes: int = BROADCAST_MAX_BYTES) -> Plan:
    """The plan of ``program``.

    ``broadcast_max_bytes`` is the size up to which a static side may stand in every task. Raises ``VerificationError``
    where an aggregate may not recurse through a rule, ``UnsupportedError`` where the loop cannot say what a rule says.
    """
    for run in PASSES:
        program = run(program)
    return _planned(program, broadcast_max_bytes)


def stages(program: Program, broadcast_max_bytes: int = BROADCAST_MAX_BYTES) -> list[Stage]:
    """What ``compile_program`` makes of ``program``, stage by stage; raises what it raises."""
    return compile_stages(program, broadcast_max_bytes)[1]


def compile_stages(program: Program, broadcast_max_bytes: int = BROADCAST_MAX_BYTES) -> tuple[Plan, list[Stage]]:
    """The plan of ``program``, and its stages from what the user meant to the plan."""
    found = [after_pass("program", program)]
    for run in PASSES:
        before, program = program, run(program)
        found.append(after_pass(run.__name__, program, before))
    made = _planned(program, broadcast_max_bytes)
    return made, [*found, *of_plan(program, made, broadcast_max_bytes)]


def _planned(program: Program, broadcast_max_bytes: int) -> Plan:
    for warning in program.warnings:
        logger.warning("%s", warning)
    return plan(program, broadcast_max_bytes)


__all__ = ["BROADCAST_MAX_BYTES", "PASSES", "STAGES", "Stage", "compile_program", "compile_stages", "stages"]
