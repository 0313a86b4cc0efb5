"""What a text is asked for, as one Program: for engines that run all of it at once and keep what is wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.stratify import needs_of
from pyspark_paralagg.datalog.whole import whole_program
from pyspark_paralagg.program.program import Column, Relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_paralagg.datalog.resolved import Resolved
    from pyspark_paralagg.program.program import Program


def asked_program(resolved: Resolved, names: Sequence[str]) -> Program:
    """The relations ``names`` and those that they need. One without rules has the rows that it is given, each once."""
    program = resolved.program
    derived = {r.name for r in program.relations}
    reached = _reached(needs_of(program), [n for n in names if n in derived])
    given = {source.relation: number for number, source in enumerate(resolved.sources)}
    plain = tuple(
        Relation(name, tuple(Column(c.name, c.type) for c in resolved.sources[given[name]].columns), (), base.id)
        for name in dict.fromkeys(names)
        if name not in derived
        for base in program.inputs
        if base.source == given[name]
    )
    return whole_program(
        replace(
            program,
            relations=(*(r for r in program.relations if r.name in reached), *plain),
            rules=tuple(r for r in program.rules if r.head in reached),
            limits=tuple(x for x in program.limits if x.relation in reached),
        )
    )


def _reached(needs: dict[str, set[str]], names: Sequence[str]) -> set[str]:
    found, waiting = set[str](), list(names)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += needs[one]
    return found
