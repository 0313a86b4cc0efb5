"""Build the form of a stratum whose sub-buckets are split and merged while it runs, from the Plan's ``spread``.

Relations start with one sub-bucket for each bucket. A rule over such a relation that looks up inputs is applied where
the relation's rows are: the inputs' rows of a split bucket are copied to its ranks (``exchange.replicas``). A rule that
looks up such a relation gets a copy of its driver's delta on all ranks of the bucket, as with a fixed number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.plan.plan import Probe, Spread, Target, hashed_heads
from pyspark_paralagg.program.expr import columns

if TYPE_CHECKING:
    from pyspark_paralagg.plan.plan import PlannedRule, StaticIndex, Stratum


def refinable(stratum: Stratum) -> Spread | None:
    """Return the form of the stratum, with the relations whose rows move; None if there is none."""
    form = _Refinable(stratum)
    return form.build() if form.relations else None


def local_lookups(rule: PlannedRule, stratum: Stratum, relations: frozenset[str] | set[str]) -> list[Probe]:
    """Return the lookups of inputs where a rule reads the rows of one of ``relations`` at their ranks."""
    probes = partitioned(rule, stratum)
    is_local = rule.driver.index is None and rule.driver.relation in relations
    return probes if is_local and not any(p.recursive for p in probes) else []


def own_lookups(rule: PlannedRule, stratum: Stratum) -> list[str]:
    """Return the relations that a rule looks up at their own ranks, not in copies."""
    own = {i.id: i.relation for i in stratum.relation_indexes if not i.copy}
    return [own[p.index] for p in partitioned(rule, stratum) if p.recursive and p.index in own]


def looked_up_by(copy: int, stratum: Stratum) -> frozenset[str]:
    """Return the relations that are looked up at their own ranks by the rules which a copy drives."""
    rules = (r for r in stratum.rules if r.driver.index == copy)
    return frozenset(name for rule in rules for name in own_lookups(rule, stratum))


def partitioned(rule: PlannedRule, stratum: Stratum) -> list[Probe]:
    """Return the lookups of a rule whose rows are not on every rank."""
    everywhere = {(True, i.id) for i in stratum.relation_indexes if i.placement == "everywhere"}
    everywhere |= {(False, i.id) for i in stratum.static_indexes if i.placement == "everywhere"}
    return [s for s in rule.steps if isinstance(s, Probe) and (s.recursive, s.index) not in everywhere]


class _Refinable:
    """The builder. ``relations`` are those whose rows may move while the loop runs."""

    def __init__(self, stratum: Stratum) -> None:
        self._stratum = stratum
        spread = () if stratum.spread is None else stratum.spread.relations
        views = {r.name for r in stratum.relations if any(d.view is not None for d in r.dependents)}
        self.relations = set(spread) - views
        statics = {i.id: i for i in stratum.static_indexes}
        for rule in stratum.rules:
            for p in local_lookups(rule, stratum, self.relations):
                if not p.keys or statics[p.index].aligned_to is not None:  # groups are ids of rows that do not move
                    self.relations.discard(rule.driver.relation)

    def build(self) -> Spread:
        stratum, spread = self._stratum, self._stratum.spread
        assert spread is not None  # noqa: S101 - for the type checker
        copied = {p.index for r in stratum.rules for p in local_lookups(r, stratum, self.relations)}
        rules = tuple(
            self._rule(rule, with_copy, copied)
            for rule, with_copy in zip(stratum.rules, spread.stratum.rules, strict=True)
        )
        before = {i.id for i in stratum.relation_indexes}
        drivers = {r.driver.index for r in rules}
        copies = tuple(i for i in spread.stratum.relation_indexes if i.id not in before and i.id in drivers)
        changed = replace(
            stratum,
            rules=rules,
            static_indexes=tuple(_index(i, rules) for i in stratum.static_indexes),
            relation_indexes=(*stratum.relation_indexes, *copies),
            in_place=stratum.in_place and not copies,
            ordered_by=None,
            copies_order=False,
            mirrored=None,
            spread=None,
            hubs=None,
            sent_early=hashed_heads(rules),
        )
        to_all = tuple(i.id for i in copies if i.id in spread.to_all)
        return Spread((), tuple(sorted(self.relations)), to_all, changed)

    def _rule(self, rule: PlannedRule, with_copy: PlannedRule, copied: set[int]) -> PlannedRule:
        stratum = self._stratum
        probes = partitioned(rule, stratum)
        meets_moved = any(name in self.relations for name in own_lookups(rule, stratum))
        is_moved = rule.driver.index is None and rule.driver.relation in self.relations
        if meets_moved or (is_moved and any(p.recursive for p in probes)):
            rule = with_copy
        if rule.target.kind != "resolved" or not (
            rule.head in self.relations or any(p.index in copied for p in probes if not p.recursive)
        ):
            return rule
        head = next(r for r in stratum.relations if r.name == rule.head)
        names = frozenset().union(*(columns(e) for e in rule.emit[: len(head.keys)]))
        reads = tuple(sorted(names | set(rule.reads)))
        return replace(rule, target=Target("computed"), reads=reads, adds_by_target=False)


def _index(index: StaticIndex, rules: tuple[PlannedRule, ...]) -> StaticIndex:
    """Return the index with the columns that these rules read."""
    probes = [
        (r, s) for r in rules for s in r.steps if isinstance(s, Probe) and not s.recursive and s.index == index.id
    ]
    read = {c for rule, probe in probes for c, bind in enumerate(probe.binds) if bind in rule.reads}
    sorting = [n for n, r in enumerate(rules) if r.target.kind == "resolved" and r.resolving_probe.index == index.id]
    return replace(index, read=tuple(sorted(read)), sorted_by=sorting[0] if len(sorting) == 1 else None)
