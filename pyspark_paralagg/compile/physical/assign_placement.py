"""Choose the index that each probe of a chain reads, so that every probe is local, and how the head's row is located.

A row stays in the task of its driver while the chain runs. A probe whose keys are exactly the columns by which the
driver is distributed reads a *partitioned* index; any other reads an index replicated *everywhere*. If that is not
possible or too large, the driver reads a copy of its relation that is distributed as the probe needs it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.physical.distribute import Distribution, driver_columns
from pyspark_paralagg.plan.plan import Driver, Filter, Placement, PlannedRule, Probe, Target
from pyspark_paralagg.program.expr import Col
from pyspark_paralagg.program.text import show_rule

if TYPE_CHECKING:
    from pyspark_paralagg.compile.physical.chain import Chain, Lookup
    from pyspark_paralagg.compile.physical.select_indexes import Indexes
    from pyspark_paralagg.program.program import Program


@dataclass(frozen=True)
class _Location:
    """The location of the driver's rows: by the hash of keys ``by``, or in every task; ``index`` is a copy to read."""

    by: tuple[int, ...]
    is_everywhere: bool = False
    index: int | None = None


def assign_placement(
    chain: Chain, program: Program, distribution: Distribution, indexes: Indexes, broadcast_max_bytes: int
) -> PlannedRule:
    """Return the planned rule of ``chain``; add the indexes that it needs to ``indexes``."""
    return _Placer(chain, program, distribution, indexes, broadcast_max_bytes).rule()


class _Placer:
    def __init__(
        self, chain: Chain, program: Program, distribution: Distribution, indexes: Indexes, broadcast_max_bytes: int
    ) -> None:
        self._chain = chain
        self._program = program
        self._distribution = distribution
        self._indexes = indexes
        self._max_bytes = broadcast_max_bytes
        self._driver = program.relation(chain.driver_relation)
        self._head = program.relation(chain.rule.head)
        self._location = self._choose_location()

    def rule(self) -> PlannedRule:
        """Return the planned rule: the chain with an index for each probe and a target."""
        chain = self._chain
        steps: list[Probe | Filter] = []
        is_product_pending = self._location.is_everywhere
        for s in chain.steps:
            if isinstance(s, Filter):
                steps.append(s)
            elif chain.rule.body[s.atom].relation is not None:
                steps.append(self._recursive_probe(s))
            elif is_product_pending and not s.keys and chain.rule.body[s.atom].kind == "join":
                steps.append(self._spread_probe(s))
                is_product_pending = False
            else:
                steps.append(self._static_probe(s))
        driver = Driver(self._driver.name, chain.version, chain.driver_binds, self._location.index)
        text = show_rule(chain.rule, self._program)
        head, place = self._head.name, chain.rule.place
        planned = PlannedRule(head, driver, tuple(steps), chain.emit, Target("computed"), text, place)
        return replace(planned, target=self._target(planned))

    def _choose_location(self) -> _Location:
        current = self._distribution.by[self._driver.name]
        chain = self._chain
        if not self._driver.keys and self._is_product():
            return _Location(
                (), is_everywhere=True, index=self._indexes.relation(self._driver.name, (), "everywhere", copy=True).id
            )
        for lookup in chain.lookups:
            pairs = driver_columns(lookup, chain, self._driver)
            if pairs is None or {d for _, d in pairs} == set(current):
                continue
            if not self._must_be_partitioned(lookup):
                continue
            by = tuple(d for _, d in sorted(pairs, key=lambda pair: self._rank(lookup, pair)))
            if any(self._matches(other, current) and self._must_be_partitioned(other) for other in chain.lookups):
                break
            return _Location(by, index=self._indexes.relation(self._driver.name, by, "partitioned", copy=True).id)
        return _Location(current)

    def _rank(self, lookup: Lookup, pair: tuple[int, int]) -> int:
        """Rank columns in the order of the probed relation's distribution: if the orders agree, it needs no copy."""
        relation = self._chain.rule.body[lookup.atom].relation
        order = self._distribution.by[relation] if relation is not None else ()
        return order.index(pair[0]) if pair[0] in order else len(order) + pair[0]

    def _is_product(self) -> bool:
        """Return whether the first join is a product with an input; the input's rows are then spread over the tasks."""
        first = next((x for x in self._chain.lookups if self._chain.rule.body[x.atom].kind == "join"), None)
        return first is not None and not first.keys and self._chain.rule.body[first.atom].relation is None

    def _must_be_partitioned(self, lookup: Lookup) -> bool:
        """Return whether ``lookup`` reads a recursive relation, or an input too large to be replicated."""
        atom = self._chain.rule.body[lookup.atom]
        if atom.input is None:
            return True
        size = self._program.input(atom.input).size_bytes
        return size is None or size > self._max_bytes

    def _matches(self, lookup: Lookup, by: tuple[int, ...]) -> bool:
        pairs = driver_columns(lookup, self._chain, self._driver)
        return pairs is not None and {d for _, d in pairs} == set(by)

    def _aligned(self, lookup: Lookup) -> tuple[tuple[int, ...], dict[int, int]] | None:
        """Return the columns in the order of the driver's distribution if the keys are exactly these; else None."""
        pairs = driver_columns(lookup, self._chain, self._driver)
        if self._location.is_everywhere or pairs is None or {d for _, d in pairs} != set(self._location.by):
            return None
        column_of = {d: c for c, d in pairs}
        columns = tuple(column_of[d] for d in self._location.by)
        return (columns, column_of) if self._types_agree(lookup, column_of) else None

    def _types_agree(self, lookup: Lookup, column_of: dict[int, int]) -> bool:
        # The hash of a value depends on its type.
        atom = self._chain.rule.body[lookup.atom]
        for d, c in column_of.items():
            if atom.relation is not None:
                column_type = self._program.relation(atom.relation).keys[c].type
            else:
                column_type = self._program.input(atom.input or 0).exprs[c].type
            if column_type != self._driver.keys[d].type:
                return False
        return True

    def _recursive_probe(self, lookup: Lookup) -> Probe:
        name = str(self._chain.rule.body[lookup.atom].relation)
        exprs = dict(lookup.keys)
        aligned = self._aligned(lookup)
        if aligned is None:
            columns = tuple(c for c, _ in lookup.keys)
            index = self._indexes.relation(name, columns, "everywhere", copy=True)
        else:
            columns = aligned[0]
            is_copy = self._distribution.by[name] != columns
            index = self._indexes.relation(name, columns, "partitioned", copy=is_copy)
        keys = tuple(exprs[c] for c in columns)
        return Probe(index.id, "join", keys, self._chain.binds[lookup.atom], recursive=True, version=lookup.version)

    def _static_probe(self, lookup: Lookup) -> Probe:
        aligned = self._aligned(lookup)
        if aligned is None:
            return self._probe(lookup, tuple(c for c, _ in lookup.keys), "everywhere", ())
        return self._probe(lookup, aligned[0], "partitioned", aligned[0])

    def _spread_probe(self, lookup: Lookup) -> Probe:
        """Plan a product with a replicated driver: the input is distributed like the head."""
        binds = self._chain.binds[lookup.atom]
        position = {v: p for p, v in enumerate(binds) if v is not None}
        head_keys = [self._chain.emit[k] for k in self._distribution.by[self._head.name]]
        by = [position[e.name] for e in head_keys if isinstance(e, Col) and e.name in position]
        partition_by = tuple(by) if by and len(by) == len(head_keys) else tuple(position.values())
        return self._probe(lookup, (), "partitioned", partition_by)

    def _probe(self, lookup: Lookup, columns: tuple[int, ...], placement: Placement, by: tuple[int, ...]) -> Probe:
        atom, binds = self._chain.rule.body[lookup.atom], self._chain.binds[lookup.atom]
        payload = tuple(p for p, v in enumerate(binds) if v is not None)
        index = self._indexes.static(atom.input or 0, columns, payload, placement, by, self._driver.name)
        exprs = dict(lookup.keys)
        return Probe(index.id, atom.kind, tuple(exprs[c] for c in columns), tuple(binds[p] for p in payload))

    def _target(self, rule: PlannedRule) -> Target:
        keys = rule.emit[: len(self._head.keys)]
        names = [e.name for e in keys if isinstance(e, Col)]
        if not keys or len(names) < len(keys):
            return Target("computed")
        is_own = self._head is self._driver and self._location.index is None
        if is_own and names == list(rule.driver.binds[: len(keys)]):
            return Target("same")
        for n, s in enumerate(rule.steps):
            if isinstance(s, Probe) and not s.recursive and s.kind == "join" and set(names) <= set(s.binds):
                index = self._indexes.statics[s.index]
                if index.placement == "partitioned":
                    return Target("resolved", n, tuple(s.binds.index(v) for v in names))
        return Target("computed")
