"""Build the stratum for sub-buckets (``Stratum.spread``): the rows of one bucket are on several ranks.

A row's sub-bucket is the hash of the columns that are not hashed into its bucket, so the edges of a hub, or the rows of
one key of a join, are shared by several ranks. A rule that joins with them needs all of them: the delta of its driver
is copied to every sub-bucket of its bucket first (the intra-bucket exchange of Kumar and Gilray, Load-balancing
Parallel Relational Algebra). A rule may look up one thing that is spread. All else that is partitioned stays in the
first sub-bucket, and a rule that looks up only that gets a copy of the delta there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.physical.annotate import annotate
from pyspark_paralagg.plan.plan import Probe, RelationIndex, Spread, Target

if TYPE_CHECKING:
    from pyspark_paralagg.plan.plan import PlannedRelation, PlannedRule, Stratum


def spread(stratum: Stratum) -> Spread | None:
    """Return the stratum with copies of deltas where sub-buckets need them; None if nothing can be spread."""
    # Each rank numbers the strings that rules make on its own, so such rows stay where they are.
    if (
        stratum.bitmap is not None
        or stratum.bit_rows is not None
        or stratum.decomposition is not None
        or stratum.makes_strings
    ):
        return None
    return _Spreading(stratum).run()


@dataclass
class _Spreading:
    stratum: Stratum
    copies: dict[tuple[str, bool], RelationIndex] = field(default_factory=dict)

    def run(self) -> Spread | None:
        """Return the changed stratum; None if nothing is spread."""
        relations = frozenset(r.name for r in self.stratum.relations if self._may_spread(r))
        alone = [p for r in self.stratum.rules for p in self._partitioned(r) if self._meets_one(r)]
        other = [p for r in self.stratum.rules for p in self._partitioned(r) if not self._meets_one(r)]
        statics = frozenset(p.index for p in alone if not p.recursive and p.kind == "join")
        statics -= {p.index for p in [*other, *(p for p in alone if p.kind != "join")] if not p.recursive}
        if not relations and not statics:
            return None
        rules = tuple(self._rule(r, relations, statics) for r in self.stratum.rules)
        made = tuple(self.copies.values())
        changed = replace(
            self.stratum,
            relation_indexes=(*self.stratum.relation_indexes, *made),
            rules=rules,
            in_place=self.stratum.in_place and not made,
            ordered_by=None if made else self.stratum.ordered_by,
        )
        to_all = tuple(sorted(i.id for (_, is_to_all), i in self.copies.items() if is_to_all))
        return Spread(tuple(sorted(statics)), tuple(sorted(relations)), to_all, annotate(changed))

    def _may_spread(self, of: PlannedRelation) -> bool:
        """Return whether it has further keys, no view, and rules look up nothing partitioned beside it."""
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
        """Return whether a rule makes one partitioned lookup from the relation itself: a copy is elsewhere already."""
        return len(self._partitioned(rule)) == 1 and rule.driver.index is None

    def _partitioned(self, rule: PlannedRule) -> list[Probe]:
        """Return the lookups of a rule whose rows are not on every rank."""
        lookups = []
        for step in rule.steps:
            if isinstance(step, Probe):
                indexes = self.stratum.relation_indexes if step.recursive else self.stratum.static_indexes
                if next(i for i in indexes if i.id == step.index).placement != "everywhere":
                    lookups.append(step)
        return lookups

    def _rule(self, rule: PlannedRule, relations: frozenset[str], statics: frozenset[int]) -> PlannedRule:
        probes = self._partitioned(rule)
        if not probes or rule.driver.index is not None:
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
