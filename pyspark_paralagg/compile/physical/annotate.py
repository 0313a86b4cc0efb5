"""Add to a stratum the facts that follow from its rules, so that every engine reads them and none derives them.

They are the fields ``Probe.aligned``, ``Target.local``, ``PlannedRule.reads`` and ``adds_by_target``,
``StaticIndex.read``, ``aligned_to`` and ``sorted_by``, and of ``Stratum`` ``copies_order``, ``sent_early``,
``keeps_state`` and ``keeps_indexes``. Everything here depends on the Plan alone, not on the data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.plan.plan import Filter, PlannedRule, Probe, StaticIndex, Stratum, hashed_heads
from pyspark_paralagg.program.expr import Col, columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.plan.plan import PlannedRelation
    from pyspark_paralagg.program.expr import Expr


def annotate(stratum: Stratum, mirror: int | None = None) -> Stratum:
    """Return ``stratum`` with these fields set. ``mirror`` is the copy whose rows are numbered as the relation's."""
    return _Annotating(stratum, mirror).stratum()


class _Annotating:
    def __init__(self, stratum: Stratum, mirror: int | None) -> None:
        self._stratum = stratum
        self._mirror = mirror
        self._relations = {r.name: r for r in stratum.relations}
        self._everywhere = {i.id for i in stratum.static_indexes if i.placement == "everywhere"}

    def stratum(self) -> Stratum:
        """Return the stratum with annotated rules and indexes."""
        rules = tuple(self._rule(r) for r in self._stratum.rules)
        annotated = replace(
            self._stratum,
            rules=rules,
            static_indexes=tuple(_index(i, rules) for i in self._stratum.static_indexes),
            copies_order=self._stratum.ordered_by is not None and self._copies(self._stratum.ordered_by),
            sent_early=hashed_heads(rules),
        )
        return replace(annotated, keeps_state=_keeps_state(annotated), keeps_indexes=_keeps_indexes(annotated))

    def _rule(self, rule: PlannedRule) -> PlannedRule:
        steps = tuple(replace(s, aligned=self._is_aligned(rule, s)) if isinstance(s, Probe) else s for s in rule.steps)
        rule = replace(rule, steps=steps, target=replace(rule.target, local=self._is_local(rule)))
        names = (columns(e) for e in _evaluated(rule, self._relations[rule.head]))
        return replace(rule, reads=tuple(sorted(frozenset().union(*names))), adds_by_target=self._adds_by_target(rule))

    def _is_aligned(self, rule: PlannedRule, probe: Probe) -> bool:
        if probe.recursive or rule.driver.index not in (None, self._mirror) or probe.index in self._everywhere:
            return False
        keys = self._relations[rule.driver.relation].keys
        return 0 < len(keys) == len(probe.keys) and all(
            isinstance(k, Col) and k.name == rule.driver.binds[j] for j, k in enumerate(probe.keys)
        )

    def _is_local(self, rule: PlannedRule) -> bool:
        """Return whether the head is distributed by columns that the rule copies from those of the driver."""
        if rule.driver.index is not None:
            return False
        head, driver = self._relations[rule.head], self._relations[rule.driver.relation]
        return len(head.distribute_by) == len(driver.distribute_by) and all(
            head.keys[h].type == driver.keys[d].type and _is_variable(rule.emit[h], rule.driver.binds[d])
            for h, d in zip(head.distribute_by, driver.distribute_by, strict=True)
        )

    def _adds_by_target(self, rule: PlannedRule) -> bool:
        """Return whether the rule adds doubles of the driver's row to the targets of an aligned join, its last step."""
        if self._stratum.relation_class == "lattice" or rule.target.kind != "resolved":
            return False
        last = rule.resolving_probe
        if last is not rule.steps[-1] or last.kind != "join" or not last.aligned:
            return False
        if any(isinstance(s, Probe) and s.recursive for s in rule.steps):
            return False
        head = self._relations[rule.head]
        if not all(d.definition.is_sum and d.column.type == "double" for d in head.dependents):
            return False
        return not any(columns(value) & set(last.binds) for value in rule.emit[len(head.keys) :])

    def _copies(self, dependent: int) -> bool:
        """Return whether every rule copies this column of the only relation from its driver's row."""
        [relation] = self._stratum.relations
        at = len(relation.keys) + dependent
        return all(_is_variable(rule.emit[at], rule.driver.binds[at]) for rule in self._stratum.rules)


def _is_variable(expr: Expr, name: str | None) -> bool:
    return isinstance(expr, Col) and expr.name == name


def _evaluated(rule: PlannedRule, head: PlannedRelation) -> Iterator[Expr]:
    """Yield what a rule computes in the loop: not the head's keys if its row is located, nor aligned keys."""
    yield from rule.emit if rule.target.kind == "computed" else rule.emit[len(head.keys) :]
    for step in rule.steps:
        if isinstance(step, Filter):
            yield step.condition
        elif not step.aligned:
            yield from step.keys


def _index(index: StaticIndex, rules: tuple[PlannedRule, ...]) -> StaticIndex:
    probes = [
        (rule, step)
        for rule in rules
        for step in rule.steps
        if isinstance(step, Probe) and not step.recursive and step.index == index.id
    ]
    read = {c for rule, probe in probes for c, bind in enumerate(probe.binds) if bind in rule.reads}
    aligned_to = [rule.driver.relation for rule, probe in probes if probe.aligned]
    sorting = [n for n, r in enumerate(rules) if r.target.kind == "resolved" and r.resolving_probe.index == index.id]
    return replace(
        index,
        read=tuple(sorted(read)),
        aligned_to=aligned_to[-1] if aligned_to else None,
        sorted_by=sorting[0] if len(sorting) == 1 else None,
    )


def _keeps_state(stratum: Stratum) -> bool:
    """Return whether the stratum is a lattice in place, or adds up along rows of one static index a rule."""
    grows = (stratum.relation_class == "lattice" and stratum.in_place) or _adds_along_rows(stratum)
    has_views = any(d.view for r in stratum.relations for d in r.dependents)
    is_sorted_everywhere = any(
        i.placement == "everywhere" and i.aligned_to is None and i.sorted_by is not None for i in stratum.static_indexes
    )
    return grows and not has_views and not is_sorted_everywhere and _is_of_tuples(stratum)


def _adds_along_rows(stratum: Stratum) -> bool:
    only_sums = all(d.definition.is_sum for r in stratum.relations for d in r.dependents)
    is_total = stratum.relation_class == "accumulating" and stratum.tolerance is None
    return is_total and only_sums and all(map(_goes_along_rows, stratum.rules))


def _goes_along_rows(rule: PlannedRule) -> bool:
    probes = [s for s in rule.steps if isinstance(s, Probe)]
    return len(probes) == 1 and probes[0].aligned and rule.target.kind == "resolved"


def _keeps_indexes(stratum: Stratum) -> bool:
    """Return whether the static indexes fit other base rows.

    A rule may not compute keys of a relation whose ids the indexes have: each run would add some.
    """
    anchored = {i.aligned_to for i in stratum.static_indexes}
    anchored |= {r.head for r in stratum.rules if r.target.kind == "resolved"}
    adds_keys = any(r.target.kind == "computed" and r.head in anchored for r in stratum.rules)
    has_initial = any(r.initial is not None for r in stratum.relations)
    return bool(stratum.static_indexes) and not has_initial and not adds_keys and _is_of_tuples(stratum)


def _is_of_tuples(stratum: Stratum) -> bool:
    """Return whether an engine evaluates the rules by tuples, and only static indexes are probed."""
    forms = (stratum.bitmap, stratum.bit_rows, stratum.decomposition)
    return not (any(forms) or stratum.relation_indexes or stratum.makes_strings)
