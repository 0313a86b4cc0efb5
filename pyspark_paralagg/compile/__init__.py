"""Program -> Plan. Each pass is ``Program -> Program``, one file, named by a verb; ``PASSES`` is their order.

    stratify      what is mutually recursive is one fixpoint, what it needs comes before it
    drive_static  a rule without a recursive atom gets one to start from
    simplify      conditions that say nothing go, those about one input become its filters
    hoist         what an input can compute at load leaves the loop
    place_semi    semi and anti joins are lookups of equal columns
    prune         columns that nobody reads go
    check_types   what the loop has no words for is refused
    verify        each stratum gets its class, by proof

and then ``plan`` builds the physical form out of order_joins, differentiate, assign_placement and select_indexes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.check_types import check_types
from pyspark_paralagg.compile.drive_static import drive_static
from pyspark_paralagg.compile.hoist import hoist
from pyspark_paralagg.compile.place_semi import place_semi
from pyspark_paralagg.compile.plan import BROADCAST_MAX_BYTES, plan
from pyspark_paralagg.compile.prune import prune
from pyspark_paralagg.compile.simplify import simplify
from pyspark_paralagg.compile.stratify import stratify
from pyspark_paralagg.compile.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.program.program import Program

PASSES: tuple[Callable[[Program], Program], ...] = (
    stratify,
    drive_static,
    simplify,
    hoist,
    place_semi,
    prune,
    check_types,
    verify,
)


def compile_program(program: Program, broadcast_max_bytes: int = BROADCAST_MAX_BYTES) -> Plan:
    """The plan of ``program``.

    ``broadcast_max_bytes`` is the size up to which a static side may stand in every task. Raises ``VerificationError``
    where an aggregate may not recurse through a rule, ``UnsupportedError`` where the loop cannot say what a rule says.
    """
    for run in PASSES:
        program = run(program)
    return plan(program, broadcast_max_bytes)


__all__ = ["BROADCAST_MAX_BYTES", "PASSES", "compile_program"]
