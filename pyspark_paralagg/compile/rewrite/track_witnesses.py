"""Turn ``mcount``, ``msum`` and ``h_index`` into relations of witnesses, which are lattices, and columns of them.

    attends(person, mcount(friend)) :- attends(friend, n), knows(friend, person), n >= 3

    attends_by_friend(person, friend) :- attends(friend, n), knows(friend, person), n >= 3
    attends(person, n): n counts the rows of attends_by_friend

Under ``msum`` the witness relation keeps the greatest contribution (``max``) of each witness; under ``h_index`` the
least total and value, where a total of null is 0: one that comes late would let the column rise. The relation's other
columns move into a relation with the original keys (``attends_values``), from which they are copied.
The new relations take over base, initial rows and rules. A column with a ``view`` follows its relation within the same
application of the step, so the iterations do not change. (``$MCOUNT`` in Sun et al., PARALAGG; the state there is the
witness map, too.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Call, Expr, Lit
from pyspark_paralagg.program.names import fresh_name
from pyspark_paralagg.program.program import Column, Dependent, Program, Relation, Rule, View

if TYPE_CHECKING:
    from collections.abc import Sequence


def track_witnesses(program: Program) -> Program:
    """Return the program whose dependents with ``supplied`` columns are views of new relations."""
    for relation in program.relations:
        if any(d.supplied for d in relation.dependents):
            program = _Tracker(program, relation).run()
    return program


@dataclass(frozen=True)
class _Source:
    """A new relation; ``columns`` selects from the columns that the original relation is supplied with.

    A null in one of ``totals`` is 0.
    """

    relation: Relation
    columns: tuple[str, ...]
    totals: tuple[str, ...] = ()


class _Tracker:
    """Splits one relation into witness relations and views of them."""

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
            own_dependents = [d for d in old.dependents if d.supplied and _witnesses(d) == witnesses]
            source = self._witness_relation(witnesses, own_dependents)
            sources.append(source)
            views |= {d.column.name: _view(source.relation.name, d) for d in own_dependents}
        plain = tuple(d for d in old.dependents if not d.supplied)
        if plain:
            name = self._fresh(f"{old.name}_values")
            kept = tuple(d.column.name for d in plain)
            sources.append(_Source(Relation(name, old.keys, plain, old.base, old.initial), (*self._keys, *kept)))
            views |= {column: View(name, column) for column in kept}
        program = self._program
        for n, source in enumerate(sources):
            program, filled = self._with_rows(program, source)
            sources[n] = filled
        program, empty = self._empty_input(program)
        viewing = replace(
            old,
            dependents=tuple(replace(d, supplied=(), view=views[d.column.name]) for d in old.dependents),
            base=empty,
            initial=None,
        )
        relations = [viewing if r is old else r for r in self._program.relations]
        origins = ", ".join(f"{column} from {view.relation}" for column, view in views.items())
        return replace(
            program,
            relations=(*relations, *(s.relation for s in sources)),
            rules=tuple(r for rule in program.rules for r in self._rules(rule, sources)),
            notes=(*program.notes, f"{old.name}: a view of separate relations for its witnesses, {origins}"),
        )

    def _witness_relation(self, witnesses: tuple[Column, ...], dependents: Sequence[Dependent]) -> _Source:
        old = self._relation
        shares = {c.name: Dependent(c, d.definition.witness_aggregator) for d in dependents for c in _shares(d)}
        name = self._fresh(f"{old.name}_by_{'_'.join(w.name for w in witnesses)}")
        relation = Relation(name, (*old.keys, *witnesses), tuple(shares.values()), old.base, old.initial)
        totals = tuple(t.name for d in dependents for t in _shares(d)[:-1])
        return _Source(relation, (*self._keys, *(w.name for w in witnesses), *shares), totals)

    def _fresh(self, stem: str) -> str:
        name = fresh_name(stem, self._taken)
        self._taken.add(name)
        return name

    def _with_rows(self, program: Program, source: _Source) -> tuple[Program, _Source]:
        """Add inputs for base and initial rows that have only the columns of ``source``."""
        program, base = self._with_input(program, self._relation.base, source)
        initial = None
        if self._relation.initial is not None:
            program, initial = self._with_input(program, self._relation.initial, source)
        return program, replace(source, relation=replace(source.relation, base=base, initial=initial))

    def _with_input(self, program: Program, input_id: int, source: _Source) -> tuple[Program, int]:
        rows = program.input(input_id)
        return program.with_new_input(replace(rows, exprs=self._select(rows.exprs, source)))

    def _empty_input(self, program: Program) -> tuple[Program, int]:
        """Add an empty input: the base of a relation of views."""
        rows = program.input(self._relation.base)
        expr_of = dict(zip(self._supplied, rows.exprs, strict=True))
        keys = tuple(expr_of[k] for k in self._keys)
        values = tuple(
            Lit(0, d.column.type) if d.supplied else expr_of[d.column.name] for d in self._relation.dependents
        )
        never = Lit(value=False, type="boolean")
        return program.with_new_input(replace(rows, exprs=(*keys, *values), filters=(*rows.filters, never)))

    def _rules(self, rule: Rule, sources: Sequence[_Source]) -> tuple[Rule, ...]:
        if rule.head != self._relation.name:
            return (rule,)
        return tuple(replace(rule, head=s.relation.name, exprs=self._select(rule.exprs, s)) for s in sources)

    def _select(self, exprs: tuple[Expr, ...], source: _Source) -> tuple[Expr, ...]:
        selected = ((c, exprs[self._supplied.index(c)]) for c in source.columns)
        return tuple(_or_zero(e) if c in source.totals else e for c, e in selected)


def _or_zero(total: Expr) -> Expr:
    return Call("Coalesce", (total, Lit(0, total.type)), total.type, nullable=False) if may_be_null(total) else total


def _shares(d: Dependent) -> tuple[Column, ...]:
    return d.supplied[: d.definition.shares]


def _witnesses(d: Dependent) -> tuple[Column, ...]:
    return d.supplied[d.definition.shares :]


def _view(relation: str, d: Dependent) -> View:
    shares = [c.name for c in _shares(d)]
    return View(relation, shares[-1] if shares else None, shares[0] if len(shares) > 1 else None)
