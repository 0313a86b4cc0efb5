"""``mcount`` and ``msum`` become relations of witnesses, which are lattices, and columns that count them.

    attends(person, mcount(friend)) :- attends(friend, n), knows(friend, person), n >= 3

    attends_by_friend(person, friend) :- attends(friend, n), knows(friend, person), n >= 3
    attends(person, n): n counts the rows of attends_by_friend

Under ``msum`` the witness relation keeps the greatest contribution (``max``) beside each witness. Other columns of the
relation go into one of its keys alone (``attends_values``), from which they are copied. The new relations take over
base, initial rows and rules; a column with a ``view`` follows its relation within the same application of the step, so
that iterations stay what they are. (Sun et al. 2023 write ``$MCOUNT``; the state of both is the witness map.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import Expr, Lit
from pyspark_paralagg.program.program import Column, Dependent, Input, Program, Relation, Rule, View

if TYPE_CHECKING:
    from collections.abc import Sequence


def track_witnesses(program: Program) -> Program:
    """The program whose dependents with ``supplied`` columns are views, and the relations that these read."""
    for relation in program.relations:
        if any(d.supplied for d in relation.dependents):
            program = _Tracker(program, relation).run()
    return program


@dataclass(frozen=True)
class _Source:
    """A relation to be made: its ``columns`` are among those that the old one is supplied with."""

    relation: Relation
    columns: tuple[str, ...]


class _Tracker:
    """Takes one relation apart."""

    def __init__(self, program: Program, relation: Relation) -> None:
        self._program = program
        self._relation = relation
        self._taken = {r.name for r in program.relations}
        self._supplied = [c.name for c in relation.supplied]
        self._keys = tuple(k.name for k in relation.keys)

    def run(self) -> Program:
        old = self._relation
        sources: list[_Source] = []
        views: dict[str, View] = {}
        for witnesses in dict.fromkeys(_witnesses(d) for d in old.dependents if d.supplied):
            mine = [d for d in old.dependents if d.supplied and _witnesses(d) == witnesses]
            source = self._witness_relation(witnesses, mine)
            sources.append(source)
            views |= {d.column.name: View(source.relation.name, _value(d)) for d in mine}
        plain = tuple(d for d in old.dependents if not d.supplied)
        if plain:
            name = self._fresh(f"{old.name}_values")
            kept = tuple(d.column.name for d in plain)
            sources.append(_Source(Relation(name, old.keys, plain, old.base, old.initial), (*self._keys, *kept)))
            views |= {c: View(name, c) for c in kept}
        program = self._program
        for n, source in enumerate(sources):
            program, moved = self._with_rows(program, source)
            sources[n] = moved
        program, nothing = self._nothing(program)
        seen = replace(
            old,
            dependents=tuple(replace(d, supplied=(), view=views[d.column.name]) for d in old.dependents),
            base=nothing,
            initial=None,
        )
        relations = [seen if r is old else r for r in self._program.relations]
        told = ", ".join(f"{c} from {v.relation}" for c, v in views.items())
        return replace(
            program,
            relations=(*relations, *(s.relation for s in sources)),
            rules=tuple(r for rule in program.rules for r in self._rules(rule, sources)),
            notes=(*program.notes, f"{old.name}: witnesses are relations of their own, and it shows {told}"),
        )

    def _witness_relation(self, witnesses: tuple[Column, ...], of: Sequence[Dependent]) -> _Source:
        old = self._relation
        values = {d.supplied[0].name: d.supplied[0] for d in of if _value(d)}
        name = self._fresh(f"{old.name}_by_{'_'.join(w.name for w in witnesses)}")
        greatest = tuple(Dependent(c, "max") for c in values.values())
        relation = Relation(name, (*old.keys, *witnesses), greatest, old.base, old.initial)
        return _Source(relation, (*self._keys, *(w.name for w in witnesses), *values))

    def _fresh(self, wanted: str) -> str:
        name, n = wanted, 2
        while name in self._taken:
            name, n = f"{wanted}_{n}", n + 1
        self._taken.add(name)
        return name

    def _with_rows(self, program: Program, source: _Source) -> tuple[Program, _Source]:
        """The inputs of base and initial rows with the columns of ``source`` alone."""
        program, base = self._with_input(program, self._relation.base, source)
        initial = None
        if self._relation.initial is not None:
            program, initial = self._with_input(program, self._relation.initial, source)
        return program, replace(source, relation=replace(source.relation, base=base, initial=initial))

    def _with_input(self, program: Program, input_id: int, source: _Source) -> tuple[Program, int]:
        rows = program.input(input_id)
        return _with_input(program, replace(rows, exprs=self._picked(rows.exprs, source)))

    def _nothing(self, program: Program) -> tuple[Program, int]:
        """No rows: what a relation of views starts from."""
        rows = program.input(self._relation.base)
        of = dict(zip(self._supplied, rows.exprs, strict=True))
        keys = tuple(of[k] for k in self._keys)
        values = tuple(Lit(0, d.column.type) if d.supplied else of[d.column.name] for d in self._relation.dependents)
        never = Lit(value=False, type="boolean")
        return _with_input(program, replace(rows, exprs=(*keys, *values), filters=(*rows.filters, never)))

    def _rules(self, rule: Rule, sources: Sequence[_Source]) -> tuple[Rule, ...]:
        if rule.head != self._relation.name:
            return (rule,)
        return tuple(replace(rule, head=s.relation.name, exprs=self._picked(rule.exprs, s)) for s in sources)

    def _picked(self, exprs: tuple[Expr, ...], source: _Source) -> tuple[Expr, ...]:
        return tuple(exprs[self._supplied.index(c)] for c in source.columns)


def _witnesses(d: Dependent) -> tuple[Column, ...]:
    return d.supplied[1:] if d.aggregator == "msum" else d.supplied


def _value(d: Dependent) -> str | None:
    return d.supplied[0].name if d.aggregator == "msum" else None


def _with_input(program: Program, rows: Input) -> tuple[Program, int]:
    fresh = replace(rows, id=max(i.id for i in program.inputs) + 1)
    return replace(program, inputs=(*program.inputs, fresh)), fresh.id
