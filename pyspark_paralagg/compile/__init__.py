"""Compile a Program to a Plan. Each pass is ``Program -> Program``, one file; ``PASSES`` is their order.

    track_witnesses  move the rows that mcount and msum count into relations of their own
    stratify         group mutually recursive relations into strata and order them by dependency
    separate_nulls   split joins on a <=> b into cases of equalities
    drive_static     give a rule without a recursive atom one to start from
    simplify         drop conditions that are always true; move those about one input into its filters
    hoist            move expressions over one input from the loop to load time
    place_semi       turn semi and anti joins into lookups of equal columns
    prune            drop columns that no rule reads
    check_types      refuse types that the loop cannot hold
    verify           prove the class of each stratum
    limit_growth     limit the iterations of strata whose keys may grow without end

Before them, engines with a JVM ``pack`` values that are no words (``compile_step``).

Then ``plan`` builds the physical form:

    differentiate     make a Δ variant for each recursive atom of a rule
    binarize          make each variant a linear chain of binary joins, ordered by order_joins
    distribute        choose the keys by which each relation is distributed
    select_indexes    keep one index for each set of join columns
    assign_placement  choose the index that each probe reads, so that every probe is local

``stages`` shows the result of each step as text.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.physical.plan import BROADCAST_MAX_BYTES, plan
from pyspark_paralagg.compile.prove.limit_growth import limit_growth
from pyspark_paralagg.compile.prove.verify import verify
from pyspark_paralagg.compile.rewrite.check_types import check_types
from pyspark_paralagg.compile.rewrite.drive_static import drive_static
from pyspark_paralagg.compile.rewrite.hoist import hoist
from pyspark_paralagg.compile.rewrite.place_semi import place_semi
from pyspark_paralagg.compile.rewrite.prune import prune
from pyspark_paralagg.compile.rewrite.separate_nulls import separate_nulls
from pyspark_paralagg.compile.rewrite.simplify import simplify
from pyspark_paralagg.compile.rewrite.stratify import stratify
from pyspark_paralagg.compile.rewrite.track_witnesses import track_witnesses
from pyspark_paralagg.compile.stages import Stage, plan_stages, stage_after, stage_changes
from pyspark_paralagg.program.text import show_program

logger = logging.getLogger("pyspark_paralagg")

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.program.program import Program

PASSES: tuple[Callable[[Program], Program], ...] = (
    track_witnesses,
    stratify,
    separate_nulls,
    drive_static,
    simplify,
    hoist,
    place_semi,
    prune,
    check_types,
    verify,
    limit_growth,
)


STAGES = (*(p.__name__ for p in PASSES), "differentiate", "binarize", "select_indexes", "assign_placement", "plan")
"""The names of all stages, in their order."""


def compile_program(program: Program, broadcast_max_bytes: int = BROADCAST_MAX_BYTES) -> Plan:
    """Compile ``program``.

    ``broadcast_max_bytes`` is the size up to which a static side may be replicated to every task. Raises
    ``VerificationError`` if an aggregate may not recurse through a rule, ``UnsupportedError`` if the loop cannot
    evaluate a rule.
    """
    for run_pass in PASSES:
        program = run_pass(program)
    for warning in program.warnings:
        logger.warning("%s", warning)
    return plan(program, broadcast_max_bytes)


def prove_program(program: Program) -> None:
    """Raise what ``verify`` raises for ``program``. Columns may have types that no engine stores."""
    for run_pass in PASSES[: PASSES.index(verify) + 1]:
        if run_pass is not check_types:
            program = run_pass(program)


def stages(program: Program, broadcast_max_bytes: int = BROADCAST_MAX_BYTES) -> list[Stage]:
    """Return the stages of ``compile_program``; raises what it raises."""
    return compile_stages(program, broadcast_max_bytes)[1]


def compile_stages(program: Program, broadcast_max_bytes: int = BROADCAST_MAX_BYTES) -> tuple[Plan, list[Stage]]:
    """Return the plan of ``program`` and all stages, from the Program as written to the Plan."""
    compiled_stages = [stage_after("program", program)]
    for run_pass in PASSES:
        before, program = program, run_pass(program)
        compiled_stages.append(stage_after(run_pass.__name__, program, before))
    physical_plan = plan(program, broadcast_max_bytes)
    return physical_plan, [*compiled_stages, *plan_stages(program, physical_plan, broadcast_max_bytes)]


def explain_texts(program: Program, broadcast_max_bytes: int) -> tuple[str, list[tuple[str, str, tuple[str, ...]]]]:
    """Return ``program`` as text, and the stages that change it as name, text and notes. Compiles it again."""
    return show_program(program), stage_changes(compile_stages(program, broadcast_max_bytes)[1])


__all__ = [
    "BROADCAST_MAX_BYTES",
    "PASSES",
    "STAGES",
    "Stage",
    "compile_program",
    "compile_stages",
    "explain_texts",
    "prove_program",
    "stages",
]
