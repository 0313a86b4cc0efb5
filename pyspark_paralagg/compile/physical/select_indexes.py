"""Collect the indexes of a stratum: one for each distinct set of join columns.

A static index is an input grouped by a set of columns with one placement; a relation index is a recursive relation
grouped by some of its keys with one placement. No prefix is shared, since an index is distributed by exactly its keys.
(docs/papers.md: Compiling Data-Parallel Datalog, section 3.2. Aggregated columns are never part of a distribution:
docs/papers.md: PARALAGG, section 4.1.) Rules that read different columns of an input first have an index each, which
``shared`` merges:

    reach(y) :- reach(x), in1(x, y).              in1 := edges without w, in2 := edges
    dist(y, d + w) :- dist(x, d), in2(x, y, w).   both: in3[x](y, w)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.simplify import with_input
from pyspark_paralagg.plan.plan import Placement, PlannedRule, Probe, RelationIndex, StaticIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Input, Program


@dataclass
class Indexes:
    """The indexes of one stratum; an id is a position in its tuple."""

    _static: dict[tuple[object, ...], StaticIndex] = field(default_factory=dict)
    _relation: dict[tuple[object, ...], RelationIndex] = field(default_factory=dict)

    def static(  # noqa: PLR0913, PLR0917 - the fields of an index
        self,
        source: int,
        keys: tuple[int, ...],
        payload: tuple[int, ...],
        placement: Placement,
        partition_by: tuple[int, ...],
        driver: str,
    ) -> StaticIndex:
        """Return the static index with these properties; add it if it is new.

        A partitioned index is separate for each driving relation, whose ids an engine may give to its groups.
        """
        owner = driver if placement == "partitioned" else ""
        properties = (source, keys, payload, placement, partition_by, owner)
        if properties not in self._static:
            self._static[properties] = StaticIndex(len(self._static), source, keys, payload, placement, partition_by)
        return self._static[properties]

    def relation(self, name: str, keys: tuple[int, ...], placement: Placement, *, copy: bool) -> RelationIndex:
        """Return the relation index with these properties; add it if it is new."""
        properties = (name, keys, placement, copy)
        if properties not in self._relation:
            self._relation[properties] = RelationIndex(len(self._relation), name, keys, placement, copy)
        return self._relation[properties]

    def shared(
        self, program: Program, rules: Sequence[PlannedRule]
    ) -> tuple[Program, tuple[StaticIndex, ...], tuple[PlannedRule, ...]]:
        """Merge static indexes of one input and the same join columns; return the ``rules`` that probe the result."""
        groups: dict[tuple[object, ...], list[StaticIndex]] = {}
        for (*_, owner), index in self._static.items():
            source = program.input(index.input)
            rows = replace(source, id=0, exprs=())
            by = tuple(source.exprs[p] for p in index.partition_by)
            # Columns are matched by expression, so an input with a duplicate column is not merged.
            alone = index.id if len(set(source.exprs)) < len(source.exprs) else None
            groups.setdefault((rows, _exprs(source, index.keys), index.placement, by, owner, alone), []).append(index)
        statics: list[StaticIndex] = []
        merged: dict[int, tuple[StaticIndex, tuple[Expr, ...]]] = {}
        for group in groups.values():
            program, index = _merge(program, group, len(statics))
            statics.append(index)
            merged |= {g.id: (index, _exprs(program.input(g.input), g.payload)) for g in group}
        return program, tuple(statics), tuple(_remap(r, program, merged) for r in rules)

    @property
    def statics(self) -> tuple[StaticIndex, ...]:
        """Return all static indexes, by id."""
        return tuple(self._static.values())

    @property
    def relations(self) -> tuple[RelationIndex, ...]:
        """Return all relation indexes, by id."""
        return tuple(self._relation.values())


def _exprs(source: Input, positions: Sequence[int]) -> tuple[Expr, ...]:
    return tuple(source.exprs[p] for p in positions)


def _merge(program: Program, group: Sequence[StaticIndex], index_id: int) -> tuple[Program, StaticIndex]:
    """Return one index with the payload of all of ``group``, which have the same keys and rows."""
    first = group[0]
    source = program.input(first.input)
    if len(group) == 1:
        return program, replace(first, id=index_id)
    keys, by = _exprs(source, first.keys), _exprs(source, first.partition_by)
    payload = tuple(dict.fromkeys(e for g in group for e in _exprs(program.input(g.input), g.payload)))
    exprs = tuple(dict.fromkeys((*keys, *by, *payload)))
    program, wide = with_input(program, replace(source, exprs=exprs))

    def positions(columns: tuple[Expr, ...]) -> tuple[int, ...]:
        return tuple(exprs.index(e) for e in columns)

    return program, StaticIndex(index_id, wide, positions(keys), positions(payload), first.placement, positions(by))


def _remap(rule: PlannedRule, program: Program, merged: dict[int, tuple[StaticIndex, tuple[Expr, ...]]]) -> PlannedRule:
    """Return ``rule`` with its static probes on the merged indexes."""
    steps = list(rule.steps)
    target = rule.target
    for n, step in enumerate(steps):
        if not isinstance(step, Probe) or step.recursive:
            continue
        index, read = merged[step.index]
        payload = _exprs(program.input(index.input), index.payload)
        if payload == read:
            steps[n] = replace(step, index=index.id)
            continue
        binds = dict(zip(read, step.binds, strict=True))
        steps[n] = replace(step, index=index.id, binds=tuple(binds.get(e) for e in payload))
        if target.kind == "resolved" and target.step == n:
            target = replace(target, payload=tuple(payload.index(read[p]) for p in target.payload))
    return replace(rule, steps=tuple(steps), target=target)
