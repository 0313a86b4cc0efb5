"""Sub-buckets: the rows of one bucket lie on several ranks, by the columns that are not hashed into the bucket.

(Papers 000 and 001.) A hub's edges, or the rows of one key of a join, are then no longer one rank's alone. What a
rule joins with them has to meet all of them: its driver's delta is copied to every sub-bucket of its bucket first
(the intra-bucket exchange). A rule may look up one thing that is spread; everything else that is partitioned stays in
the first sub-bucket, and a rule that needs that alone gets its delta copied to there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.plan.plan import Probe, RelationIndex, Target

if TYPE_CHECKING:
    from pyspark_paralagg.plan.plan import PlannedRelation, PlannedRule, Stratum


@dataclass(frozen=True)
class Spread:
    """What lies in sub-buckets: static indexes, relations. The copies ``to_all`` go to all of a bucket."""

    count: int = 1
    statics: frozenset[int] = frozenset()
    relations: frozenset[str] = frozenset()
    to_all: frozenset[int] = frozenset()


NO_SPREAD = Spread()


def spread(stratum: Stratum, count: int) -> tuple[Stratum, Spread]:
    """``stratum`` with copies of deltas where it needs them, for ``count`` sub-buckets a bucket."""
    # Texts that rules make have numbers of their own on each rank, so their rows stay where they are.
    if count == 1 or stratum.bitmap is not None or stratum.decomposition is not None or stratum.makes_strings:
        return stratum, NO_SPREAD
    return _Spreading(stratum, count).run()


@dataclass
class _Spreading:
    stratum: Stratum
    count: int
    copies: dict[tuple[str, bool], RelationIndex] = field(default_factory=dict)

    def run(self) -> tuple[Stratum, Spread]:
        relations = frozenset(r.name for r in self.stratum.relations if self._may_spread(r))
        alone = [p for r in self.stratum.rules for p in self._partitioned(r) if self._meets_one(r)]
        other = [p for r in self.stratum.rules for p in self._partitioned(r) if not self._meets_one(r)]
        statics = frozenset(p.index for p in alone if not p.recursive and p.kind == "join")
        statics -= {p.index for p in [*other, *(p for p in alone if p.kind != "join")] if not p.recursive}
        rules = tuple(self._rule(r, relations, statics) for r in self.stratum.rules)
        made = tuple(self.copies.values())
        changed = replace(
            self.stratum,
            relation_indexes=(*self.stratum.relation_indexes, *made),
            rules=rules,
            in_place=self.stratum.in_place and not made,
            ordered_by=None if made else self.stratum.ordered_by,
        )
        to_all = frozenset(i.id for (_, all_of_them), i in self.copies.items() if all_of_them)
        return changed, Spread(self.count, statics, relations, to_all)

    def _may_spread(self, of: PlannedRelation) -> bool:
        """It has further keys, nothing is counted where it stands, and rules look up nothing partitioned beside it."""
        views = [d.view for r in self.stratum.relations for d in r.dependents if d.view is not None]
        is_viewed = any(v.relation == of.name for v in views)
        if len(of.distribute_by) == len(of.keys) or is_viewed or not of.distribute_by:
            return False
        own = {i.id for i in self.stratum.relation_indexes if i.relation == of.name and not i.copy}
        return not any(
            not self._meets_one(r) and any(p.recursive and p.index in own for p in self._partitioned(r))
            for r in self.stratum.rules
        )

    def _meets_one(self, rule: PlannedRule) -> bool:
        """It looks up one partitioned thing, from the relation itself: a copy lies elsewhere already."""
        is_copy = rule.driver.index is not None and self._is_copy(rule.driver.index)
        return len(self._partitioned(rule)) == 1 and not is_copy

    def _partitioned(self, rule: PlannedRule) -> list[Probe]:
        """The look-ups of a rule whose rows are not on every rank."""
        found = []
        for step in rule.steps:
            if isinstance(step, Probe):
                indexes = self.stratum.relation_indexes if step.recursive else self.stratum.static_indexes
                if next(i for i in indexes if i.id == step.index).placement != "everywhere":
                    found.append(step)
        return found

    def _rule(self, rule: PlannedRule, relations: frozenset[str], statics: frozenset[int]) -> PlannedRule:
        probes = self._partitioned(rule)
        if not probes or (rule.driver.index is not None and self._is_copy(rule.driver.index)):
            return rule
        own = {i.id for i in self.stratum.relation_indexes if not i.copy and i.relation in relations}
        meets_all = any(p.index in (own if p.recursive else statics) for p in probes)
        if not meets_all and rule.driver.relation not in relations:
            return rule
        key = (rule.driver.relation, meets_all)
        if key not in self.copies:
            of = next(r for r in self.stratum.relations if r.name == rule.driver.relation)
            number = max([-1, *(i.id for i in (*self.stratum.relation_indexes, *self.copies.values()))]) + 1
            self.copies[key] = RelationIndex(number, of.name, of.distribute_by, "partitioned", copy=True)
        # The row of a copy is not the relation's own row.
        target = Target("computed") if rule.target.kind == "same" else rule.target
        return replace(rule, driver=replace(rule.driver, index=self.copies[key].id), target=target)

    def _is_copy(self, index: int) -> bool:
        return next(i for i in self.stratum.relation_indexes if i.id == index).copy
