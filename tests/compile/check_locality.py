"""Check the planner's invariant: every probe finds all its rows, each once, in the task where the chain runs.

Only tests call it, on every plan. It reads the Plan alone, so it is independent of the code that chooses placement.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_paralagg.plan.plan import Plan, PlannedRelation, PlannedRule, Probe, Stratum
from pyspark_paralagg.program.expr import Col, Expr


def check_locality(plan: Plan) -> list[str]:
    """Return the placement errors of ``plan``: an empty list if every probe is local."""
    return [
        f"{rule.text}: {problem}"
        for stratum in plan.strata
        for rule in stratum.rules
        for problem in _RuleCheck(plan, stratum, rule).problems()
    ]


@dataclass(frozen=True)
class _Column:
    name: str | None
    type: str


class _RuleCheck:
    def __init__(self, plan: Plan, stratum: Stratum, rule: PlannedRule) -> None:
        self._inputs = {i.id: i for i in plan.inputs}
        self._stratum = stratum
        self._relations = {r.name: r for r in stratum.relations}
        self._rule = rule
        driver = self._relations[rule.driver.relation]
        index = None if rule.driver.index is None else stratum.relation_indexes[rule.driver.index]
        self._is_everywhere = index is not None and index.placement == "everywhere"
        positions = driver.distribute_by if index is None else index.keys
        # The hash of these columns, in this order, decides the task of the driver's row.
        self._driver_columns = [_Column(rule.driver.binds[p], driver.keys[p].type) for p in positions]

    def problems(self) -> list[str]:
        """Return the placement errors of the rule."""
        problems = []
        spreading_probes = 0
        for n, step in enumerate(self._rule.steps):
            if not isinstance(step, Probe):
                continue
            if step.recursive:
                problems += self._relation_probe(n, step)
            elif self._stratum.static_indexes[step.index].placement == "partitioned":
                spreading_probes += self._is_everywhere and not step.keys and step.kind == "join"
                problems += self._static_probe(n, step)
        if self._is_everywhere and spreading_probes != 1:
            problems.append(f"the driver is everywhere and {spreading_probes} probes spread its rows")
        return problems + self._target()

    def _static_probe(self, n: int, probe: Probe) -> list[str]:
        index = self._stratum.static_indexes[probe.index]
        if self._is_everywhere:
            return [] if not probe.keys else [f"step {n} is partitioned under a driver that is everywhere"]
        if not probe.keys or index.partition_by != index.keys:
            return [f"step {n} is partitioned by other columns than it is looked up by"]
        types = [self._inputs[index.input].exprs[k].type for k in index.keys]
        return self._check_columns(n, probe.keys, types)

    def _relation_probe(self, n: int, probe: Probe) -> list[str]:
        index = self._stratum.relation_indexes[probe.index]
        if index.placement == "everywhere":
            return [] if index.copy else [f"step {n} is everywhere and no copy"]
        relation = self._relations[index.relation]
        problems = [] if index.copy or relation.distribute_by == index.keys else [f"step {n} needs a copy"]
        return problems + self._check_columns(n, probe.keys, [relation.keys[k].type for k in index.keys])

    def _check_columns(self, n: int, keys: tuple[Expr, ...], types: list[str]) -> list[str]:
        looked_up = [_Column(k.name if isinstance(k, Col) else None, t) for k, t in zip(keys, types, strict=True)]
        if self._is_everywhere or looked_up != self._driver_columns or any(c.name is None for c in looked_up):
            return [f"step {n} looks up {looked_up}, the driver lies by {self._driver_columns}"]
        return []

    def _target(self) -> list[str]:
        rule, head = self._rule, self._relations[self._rule.head]
        keys = [e.name if isinstance(e, Col) else None for e in rule.emit[: len(head.keys)]]
        if rule.target.kind == "same":
            binds = list(rule.driver.binds[: len(keys)])
            reads_head = rule.head == rule.driver.relation and rule.driver.index is None and bool(keys)
            return [] if reads_head and keys == binds else ["the target is not the driver's row"]
        if rule.target.kind == "resolved":
            return self._resolved(keys, head)
        return []

    def _resolved(self, keys: list[str | None], head: PlannedRelation) -> list[str]:
        step = self._rule.steps[self._rule.target.step or 0]
        if not isinstance(step, Probe) or step.recursive or step.kind != "join":
            return ["the target is resolved by no static join"]
        index = self._stratum.static_indexes[step.index]
        names = [step.binds[p] for p in self._rule.target.payload]
        if index.placement != "partitioned" or names != keys or not head.keys:
            return ["the target is resolved by an index that has not its keys"]
        return []
