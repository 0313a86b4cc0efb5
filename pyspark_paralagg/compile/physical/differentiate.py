"""Make the Δ variants of a rule: k recursive atoms give k chains, each driven by the delta of one atom.

    path(x, z) :- path(x, y), path(y, z)
    path(x, z) :- Δpath(x, y), old path(y, z)
    path(x, z) :- path(x, y), Δpath(y, z)

Atoms before the driver are probed in full (delta included), those after it without the delta, so no pair of rows is
joined twice. An iterated stratum has one chain a rule, driven by all rows. (docs/papers.md: Load-Balancing Parallel
Relational Algebra, section 2; docs/papers.md: Compiling Data-Parallel Datalog, section 3.2.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.physical.binarize import binarize
from pyspark_paralagg.compile.rewrite.scope import recursive_atoms

if TYPE_CHECKING:
    from pyspark_paralagg.compile.physical.chain import Chain
    from pyspark_paralagg.plan.plan import RelationClass
    from pyspark_paralagg.program.program import Program, Rule


def differentiate(rule: Rule, program: Program, relation_class: RelationClass) -> tuple[Chain, ...]:
    """Return the chains of ``rule``."""
    atoms = recursive_atoms(rule)
    if relation_class == "iterated":
        # All rows are read, so any recursive atom may be the driver; the user's order decides.
        first = next((a for a in rule.order or () if a in atoms), atoms[0])
        return (binarize(rule, program, first, "full"),)
    return tuple(
        binarize(rule, program, driver, "delta", frozenset(a for a in atoms if a > driver)) for driver in atoms
    )
