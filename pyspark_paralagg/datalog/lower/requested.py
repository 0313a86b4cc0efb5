"""What a text is asked for, as one Program: for engines that run all of it at once and keep what is wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower.dependencies import Dependencies
from pyspark_paralagg.datalog.lower.whole import whole_program
from pyspark_paralagg.program.program import Column, Relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.program.program import Program


def asked_program(resolved: Resolved, names: Sequence[str]) -> Program:
    """The relations ``names`` and those that they need. One without rules has the rows that it is given, each once."""
    program = resolved.program
    needs = Dependencies(program)
    reached = {other for n in names if n in needs.strata for other in needs.reached(n)}
    given = {source.relation: number for number, source in enumerate(resolved.sources)}
    plain = tuple(
        Relation(name, tuple(Column(c.name, c.type) for c in resolved.sources[given[name]].columns), (), base.id)
        for name in dict.fromkeys(names)
        if name not in needs.strata
        for base in program.inputs
        if base.source == given[name]
    )
    asked = replace(
        program,
        relations=(*(r for r in program.relations if r.name in reached), *plain),
        rules=tuple(r for r in program.rules if r.head in reached),
        limits=tuple(x for x in program.limits if x.relation in reached),
    )
    return whole_program(asked, {n for n, s in enumerate(resolved.sources) if not s.rows and not s.is_external})


def recursion_of(program: Program, name: str) -> tuple[str, ...] | None:
    """The relations of the last recursion that ``name`` needs, its own at best; None where there is none."""
    needs = Dependencies(program)
    if name not in needs.strata:
        return None
    reached = needs.reached(name)
    found = [names for n, names in needs.strata.items() if n in reached and needs.recursive_rules(n)]
    return needs.strata[name] if needs.strata[name] in found else next(reversed(found), None)
