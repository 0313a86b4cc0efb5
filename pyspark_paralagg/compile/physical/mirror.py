"""Build the stratum with edges at their targets, where rows follow them as *mirrors* (``Stratum.mirrored``).

Every task then writes only rows of its own. The compiler knows whether the rules allow it; the engine knows the edges,
so it decides whether it is less work than sending derived rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.physical.annotate import annotate
from pyspark_paralagg.plan.plan import Mirrored, Probe, RelationIndex, StaticIndex

if TYPE_CHECKING:
    from pyspark_paralagg.plan.plan import PlannedRelation, PlannedRule, Stratum
    from pyspark_paralagg.program.program import Input


def mirrored(stratum: Stratum, inputs: tuple[Input, ...]) -> Mirrored | None:
    """Return the mirrored stratum; None unless every rule follows one index of edges between rows of one relation."""
    moved = edges_at_targets(stratum, inputs)
    if not moved:
        return None
    copy = copy_everywhere(stratum)
    changed = replace(
        stratum,
        static_indexes=tuple(moved.get(i.id, i) for i in stratum.static_indexes),
        relation_indexes=(*stratum.relation_indexes, copy),
        rules=tuple(replace(r, driver=replace(r.driver, index=copy.id)) for r in stratum.rules),
    )
    return Mirrored(copy.id, tuple(moved), annotate(changed, mirror=copy.id))


def copy_everywhere(stratum: Stratum) -> RelationIndex:
    """Return a new copy of the only relation, which every task has."""
    number = max([-1, *(i.id for i in stratum.relation_indexes)]) + 1
    return RelationIndex(number, stratum.relations[0].name, (), "everywhere", copy=True)


def edges_at_targets(stratum: Stratum, inputs: tuple[Input, ...]) -> dict[int, StaticIndex] | None:
    """Return the indexes of edges, partitioned by target; None if some rule does not follow one index of edges."""
    if len(stratum.relations) > 1 or not stratum.in_place or stratum.makes_strings:
        return None
    if stratum.bitmap is not None or stratum.bit_rows is not None or stratum.decomposition is not None:
        return None
    [relation] = stratum.relations
    exprs = {i.id: i.exprs for i in inputs}
    statics = {i.id: i for i in stratum.static_indexes}
    moved: dict[int, StaticIndex] = {}
    for rule in stratum.rules:
        edges = _edges(rule, statics, relation)
        if edges is None:
            return None
        targets = tuple(edges.payload[rule.target.payload[k]] for k in relation.distribute_by)
        types = [exprs[edges.input][t].type for t in targets]
        if types != [relation.keys[k].type for k in relation.distribute_by]:
            return None  # their hashes differ
        by_target = replace(edges, partition_by=targets)
        if moved.setdefault(edges.id, by_target) != by_target:
            return None
    return moved


def _edges(rule: PlannedRule, statics: dict[int, StaticIndex], relation: PlannedRelation) -> StaticIndex | None:
    """Return the index that leads a rule from the driver's row to the head's, if all its other lookups are local."""
    if rule.target.kind != "resolved" or rule.driver.index is not None or not relation.keys:
        return None
    edges = None
    for at, step in enumerate(rule.steps):
        if not isinstance(step, Probe) or (not step.recursive and statics[step.index].placement == "everywhere"):
            continue
        if step.recursive or at != rule.target.step or not step.aligned:
            return None  # a mirror has the whole keys from which edges lead
        edges = statics[step.index]
    return edges
