"""Which relations of a text need which, and which rules recurse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.stratify import needs_of, strongly_connected

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule


class Dependencies:
    """Of the relations of ``program``; ``strata`` has those that each is mutually recursive with, itself included."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._needs = needs_of(program)
        self.strata = {n: names for names in strongly_connected(self._needs) for n in names}

    def recurses(self, rule: Rule) -> bool:
        """Whether ``rule`` reads a relation of its head's stratum."""
        return any(a.relation in self.strata[rule.head] for a in rule.body if a.relation is not None)

    def recursive_rules(self, name: str) -> list[Rule]:
        """The rules of relation ``name`` that recurse: the branches of its step, in their order."""
        return [r for r in self._program.rules if r.head == name and self.recurses(r)]

    def is_lean(self, name: str) -> bool:
        """Whether ``name`` is a set whose rules give no more rows than they read.

        To drop what repeats costs more there, a shuffle of all rows, than the repeated rows do where they do no harm:
        components of R-MAT 2^16 over ``both(x, y) :- edge(x, y, _); edge(y, x, _).`` took 1.6 s with it, 0.5 without.
        """
        joins = max((sum(a.kind == "join" for a in r.body) for r in self._program.rules if r.head == name), default=0)
        return not self._program.relation(name).dependents and not self.recursive_rules(name) and joins <= 1

    def reached(self, name: str) -> set[str]:
        """What ``name`` needs, itself included."""
        reached, waiting = set[str](), [name]
        while waiting:
            one = waiting.pop()
            if one not in reached:
                reached.add(one)
                waiting += self._needs[one]
        return reached
