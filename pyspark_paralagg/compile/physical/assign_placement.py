"""Where each probe of a chain finds its rows, so that every probe is local, and how the head's row is found.

A row stays in the task of its driver while the chain runs. A probe whose keys are exactly the columns by which the
driver is distributed meets a *partitioned* index; any other meets one that stands *everywhere*. Where that is not
possible or would be too large, the driver reads a copy of its relation that is distributed as the probe needs it.
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
class _Seat:
    """Where the driver's rows are: by these of its keys, or at every task; ``index`` is the copy they come from."""

    by: tuple[int, ...]
    is_everywhere: bool = False
    index: int | None = None


def assign_placement(
    chain: Chain, program: Program, distribution: Distribution, indexes: Indexes, broadcast_max_bytes: int
) -> PlannedRule:
    """The planned rule of ``chain``; the indexes that it needs are added to ``indexes``."""
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
        self._seat = self._choose_seat()

    def rule(self) -> PlannedRule:
        """The chain with its indexes."""
        chain = self._chain
        steps: list[Probe | Filter] = []
        spread = self._seat.is_everywhere
        for s in chain.steps:
            if isinstance(s, Filter):
                steps.append(s)
            elif chain.rule.body[s.atom].relation is not None:
                steps.append(self._recursive(s))
            elif spread and not s.keys and chain.rule.body[s.atom].kind == "join":
                steps.append(self._spread(s))
                spread = False
            else:
                steps.append(self._static(s))
        driver = Driver(self._driver.name, chain.version, chain.driver_binds, self._seat.index)
        text = show_rule(chain.rule, self._program)
        head, place = self._head.name, chain.rule.place
        planned = PlannedRule(head, driver, tuple(steps), chain.emit, Target("computed"), text, place)
        return replace(planned, target=self._target(planned))

    def _choose_seat(self) -> _Seat:
        own = self._distribution.by[self._driver.name]
        chain = self._chain
        if not self._driver.keys and self._is_product():
            return _Seat(
                (), is_everywhere=True, index=self._indexes.relation(self._driver.name, (), "everywhere", copy=True).id
            )
        for lookup in chain.lookups:
            pairs = driver_columns(lookup, chain, self._driver)
            if pairs is None or {d for _, d in pairs} == set(own):
                continue
            if not self._must_be_partitioned(lookup):
                continue
            by = tuple(d for _, d in sorted(pairs, key=lambda pair: self._rank(lookup, pair)))
            if any(self._fits_own(other, own) and self._must_be_partitioned(other) for other in chain.lookups):
                break
            return _Seat(by, index=self._indexes.relation(self._driver.name, by, "partitioned", copy=True).id)
        return _Seat(own)

    def _rank(self, lookup: Lookup, pair: tuple[int, int]) -> int:
        """Columns in the order in which the probed relation is distributed, so that it needs no copy if they agree."""
        relation = self._chain.rule.body[lookup.atom].relation
        order = self._distribution.by[relation] if relation is not None else ()
        return order.index(pair[0]) if pair[0] in order else len(order) + pair[0]

    def _is_product(self) -> bool:
        """The first join is a product with an input: its rows are spread over the tasks instead of the driver's."""
        first = next((x for x in self._chain.lookups if self._chain.rule.body[x.atom].kind == "join"), None)
        return first is not None and not first.keys and self._chain.rule.body[first.atom].relation is None

    def _must_be_partitioned(self, lookup: Lookup) -> bool:
        """Recursive relations, and inputs too large to stand everywhere."""
        atom = self._chain.rule.body[lookup.atom]
        if atom.input is None:
            return True
        size = self._program.input(atom.input).size_bytes
        return size is None or size > self._max_bytes

    def _fits_own(self, lookup: Lookup, own: tuple[int, ...]) -> bool:
        pairs = driver_columns(lookup, self._chain, self._driver)
        return pairs is not None and {d for _, d in pairs} == set(own)

    def _aligned(self, lookup: Lookup) -> tuple[tuple[int, ...], dict[int, int]] | None:
        """The looked-up columns in the order of the driver's distribution, if the keys are exactly those columns."""
        pairs = driver_columns(lookup, self._chain, self._driver)
        if self._seat.is_everywhere or pairs is None or {d for _, d in pairs} != set(self._seat.by):
            return None
        column_of = {d: c for c, d in pairs}
        columns = tuple(column_of[d] for d in self._seat.by)
        return (columns, column_of) if self._types_agree(lookup, column_of) else None

    def _types_agree(self, lookup: Lookup, column_of: dict[int, int]) -> bool:
        # The hash of a value depends on its type.
        atom = self._chain.rule.body[lookup.atom]
        for d, c in column_of.items():
            if atom.relation is not None:
                theirs = self._program.relation(atom.relation).keys[c].type
            else:
                theirs = self._program.input(atom.input or 0).exprs[c].type
            if theirs != self._driver.keys[d].type:
                return False
        return True

    def _recursive(self, lookup: Lookup) -> Probe:
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

    def _static(self, lookup: Lookup) -> Probe:
        aligned = self._aligned(lookup)
        if aligned is None:
            return self._probe(lookup, tuple(c for c, _ in lookup.keys), "everywhere", ())
        return self._probe(lookup, aligned[0], "partitioned", aligned[0])

    def _spread(self, lookup: Lookup) -> Probe:
        """A product under a driver that every task holds: the input's rows go where the head's rows will be."""
        binds = self._chain.binds[lookup.atom]
        position = {v: p for p, v in enumerate(binds) if v is not None}
        wanted = [self._chain.emit[k] for k in self._distribution.by[self._head.name]]
        by = [position[e.name] for e in wanted if isinstance(e, Col) and e.name in position]
        chosen = tuple(by) if by and len(by) == len(wanted) else tuple(position.values())
        return self._probe(lookup, (), "partitioned", chosen)

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
        if self._head is self._driver and self._seat.index is None and names == list(rule.driver.binds[: len(keys)]):
            return Target("same")
        for n, s in enumerate(rule.steps):
            if isinstance(s, Probe) and not s.recursive and s.kind == "join" and set(names) <= set(s.binds):
                index = self._indexes.statics[s.index]
                if index.placement == "partitioned":
                    return Target("resolved", n, tuple(s.binds.index(v) for v in names))
        return Target("computed")
