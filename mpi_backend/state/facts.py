"""What follows from a stratum of the Plan, for those who build its indexes and those who write its code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mpi_backend.state.spread import NO_SPREAD, Spread
from mpi_backend.state.types import Type, type_of
from pyspark_paralagg.plan.plan import Filter, Probe
from pyspark_paralagg.program.expr import Col, columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.plan.plan import PlannedRelation, PlannedRule, RelationIndex, StaticIndex, Stratum
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Input, View


@dataclass(frozen=True)
class Facts:
    """A stratum with the inputs that it reads, by id."""

    stratum: Stratum
    inputs: Mapping[int, Input]
    spread: Spread = NO_SPREAD
    mirror: int | None = None

    @cached_property
    def relations(self) -> dict[str, PlannedRelation]:
        """By name."""
        return {r.name: r for r in self.stratum.relations}

    @cached_property
    def statics(self) -> dict[int, StaticIndex]:
        """By id."""
        return {i.id: i for i in self.stratum.static_indexes}

    @cached_property
    def relation_indexes(self) -> dict[int, RelationIndex]:
        """By id."""
        return {i.id: i for i in self.stratum.relation_indexes}

    @property
    def is_lattice(self) -> bool:
        """Values only improve."""
        return self.stratum.relation_class == "lattice"

    @property
    def is_accumulating(self) -> bool:
        """Differences are added up."""
        return self.stratum.relation_class == "accumulating"

    @property
    def is_iterated(self) -> bool:
        """Every round begins anew."""
        return self.stratum.relation_class == "iterated"

    def input_types(self, number: int) -> list[Type]:
        """Of an input's columns."""
        return [type_of(e.type) for e in self.inputs[number].exprs]

    def payload_types(self, index: int) -> list[Type]:
        """Of what a static index holds."""
        types = self.input_types(self.statics[index].input)
        return [types[p] for p in self.statics[index].payload]

    def view_column(self, view: View) -> int | None:
        """The position of what a view copies or adds up among its relation's dependents; None where it counts rows."""
        if view.column is None:
            return None
        names = [d.column.name for d in self.relations[view.relation].dependents]
        return names.index(view.column)

    def is_followed(self, relation: str) -> bool:
        """Whether a relation of views shows its rows."""
        return any(
            d.view is not None and d.view.relation == relation for r in self.stratum.relations for d in r.dependents
        )

    def copy_of(self, rule: PlannedRule) -> int | None:
        """The index whose copy of a relation a rule starts from; None where it starts from the relation itself."""
        index = rule.driver.index
        return index if index is not None and self.relation_indexes[index].copy else None

    def is_aligned(self, rule: PlannedRule, at: int) -> bool:
        """The probe's keys are the driver's whole key: its groups are ids of the driver's relation."""
        probe = rule.steps[at]
        if not isinstance(probe, Probe) or probe.recursive or rule.driver.index not in (None, self.mirror):
            return False
        keys = self.relations[rule.driver.relation].keys
        if self.statics[probe.index].placement == "everywhere" or not keys or len(probe.keys) != len(keys):
            return False
        return all(isinstance(k, Col) and k.name == rule.driver.binds[j] for j, k in enumerate(probe.keys))

    @cached_property
    def aligned(self) -> dict[int, str]:
        """Static indexes whose groups are ids of a relation, and which."""
        return {
            step.index: rule.driver.relation
            for rule in self.stratum.rules
            for at, step in enumerate(rule.steps)
            if isinstance(step, Probe) and self.is_aligned(rule, at)
        }

    def copies(self, dependent: int) -> bool:
        """Whether every rule gives this column of its driver's row on as it is."""
        for rule in self.stratum.rules:
            at = len(self.relations[rule.head].keys) + dependent
            given = rule.emit[at]
            if not isinstance(given, Col) or given.name != rule.driver.binds[at]:
                return False
        return True

    def evaluated(self, rule: PlannedRule) -> list[Expr]:
        """What a rule computes in the loop: not the head's key where its row is known, nor keys of aligned probes."""
        keys = len(self.relations[rule.head].keys)
        out = list(rule.emit if rule.target.kind == "computed" else rule.emit[keys:])
        for at, step in enumerate(rule.steps):
            if isinstance(step, Filter):
                out.append(step.condition)
            elif not self.is_aligned(rule, at):
                out.extend(step.keys)
        return out

    def read_payload(self, index: int) -> list[bool]:
        """Payload columns of a static index that some rule reads."""
        read = [False] * len(self.statics[index].payload)
        for rule in self.stratum.rules:
            names = frozenset().union(*(columns(e) for e in self.evaluated(rule)), frozenset())
            for step in rule.steps:
                if isinstance(step, Probe) and not step.recursive and step.index == index:
                    for c, bind in enumerate(step.binds):
                        read[c] |= bind in names
        return read

    def resolving_probe(self, rule: PlannedRule) -> Probe:
        """The probe whose rows stand for the targets of a resolved rule."""
        assert rule.target.step is not None  # noqa: S101 - for the type checker
        probe = rule.steps[rule.target.step]
        assert isinstance(probe, Probe)  # noqa: S101 - likewise
        return probe

    def sorting_rule(self, index: int) -> int | None:
        """The rule by whose targets the rows of an index are sorted: the only one that is resolved through it."""
        rules = [
            n
            for n, r in enumerate(self.stratum.rules)
            if r.target.kind == "resolved" and self.resolving_probe(r).index == index
        ]
        return rules[0] if len(rules) == 1 else None
