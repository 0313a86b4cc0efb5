"""Δ variants: a rule over k recursive atoms becomes k chains, each driven by the delta of one of them.

    path(x, z) :- path(x, y), path(y, z)
    path(x, z) :- Δpath(x, y), old path(y, z)
    path(x, z) :- path(x, y), Δpath(y, z)

Atoms before the driver are probed in full (delta included), those after it without the delta, so that no pair of rows
is joined twice. An iterated stratum has one chain a rule, from all rows. (Paper 001, section 3; paper 004, section 4.)
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
    """The chains of ``rule``."""
    atoms = recursive_atoms(rule)
    if relation_class == "iterated":
        # Any recursive atom may start where all rows are read; the user's order names one.
        first = next((a for a in rule.order or () if a in atoms), atoms[0])
        return (binarize(rule, program, first, "full"),)
    return tuple(
        binarize(rule, program, driver, "delta", frozenset(a for a in atoms if a > driver)) for driver in atoms
    )
