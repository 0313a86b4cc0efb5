"""Build the stratum in which the edges of hubs lie apart from the others (``Stratum.hubs``).

A hub is a row with a large part of all edges, and its edges are work for its owner alone. In this form they lie at
their targets, in indexes of their own, and a copy of the hubs' rows drives the rules over them in every task. The
engine knows the edges, so it decides at load which rows are hubs (docs/balance.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.physical.annotate import annotate
from pyspark_paralagg.compile.physical.mirror import copy_everywhere, edges_at_targets
from pyspark_paralagg.plan.plan import HubEdges, Hubs, Probe

if TYPE_CHECKING:
    from pyspark_paralagg.plan.plan import PlannedRule, StaticIndex, Stratum
    from pyspark_paralagg.program.program import Input


def with_hubs(stratum: Stratum, inputs: tuple[Input, ...]) -> Hubs | None:
    """Return the form with hubs; None unless every rule follows one index of edges between rows of one relation."""
    at_targets = edges_at_targets(stratum, inputs)
    if not at_targets:
        return None
    first = 1 + max(i.id for i in stratum.static_indexes)
    edges = {i: replace(at_targets[i], id=first + n) for n, i in enumerate(sorted(at_targets))}
    copy = copy_everywhere(stratum)
    changed = replace(
        stratum,
        static_indexes=(*stratum.static_indexes, *edges.values()),
        relation_indexes=(*stratum.relation_indexes, copy),
        rules=(*stratum.rules, *(_over_hubs(r, copy.id, edges) for r in stratum.rules)),
    )
    return Hubs(copy.id, tuple(HubEdges(i, e.id) for i, e in edges.items()), annotate(changed))


def _over_hubs(rule: PlannedRule, copy: int, edges: dict[int, StaticIndex]) -> PlannedRule:
    """Return the rule over the edges of hubs, driven by their copy."""
    steps = tuple(
        replace(s, index=edges[s.index].id) if isinstance(s, Probe) and not s.recursive and s.index in edges else s
        for s in rule.steps
    )
    return replace(rule, driver=replace(rule.driver, index=copy), steps=steps)
