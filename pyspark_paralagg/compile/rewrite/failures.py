"""Ask a Program why a row is missing: how far each rule comes that could derive it.

    why_not@(1, 1, $COUNT) :- edges(u, 9, w)
    why_not@(1, 2, $COUNT) :- edges(u, 9, w), dist(u, d)

The atoms of a rule are joined one after the other, those first that the asked keys bind. The first one that leaves no
row is why the rule derives nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.added import is_equal, name_of, rows_with_keys, rules_of, with_relation
from pyspark_paralagg.program.expr import Col, Lit, columns, substitute
from pyspark_paralagg.program.names import added_name, stem_of
from pyspark_paralagg.program.program import Column, Dependent, Relation, Rule
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Atom, AtomKind, Program

RULE, ATOMS, FOUND = "rule", "atoms", "found"
"""The columns of the answer: the number of the attempt, how many atoms are joined, and how many rows that leaves."""


@dataclass(frozen=True)
class Try:
    """An atom of a rule, in the order in which they are joined, and the conditions that hold from there on, as text."""

    name: str
    kind: AtomKind
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class Attempt:
    """A rule that could derive the asked row: its place, and its atoms.

    ``derives`` are its constants that differ from the asked keys, as text: nothing has to be joined then.
    """

    place: str
    tries: tuple[Try, ...]
    derives: tuple[str, ...] = ()


@dataclass
class Failures:
    """The question why ``relation`` has no row with the keys ``row``; ``rewrite`` fills ``attempts``, a rule each.

    The answer has a row for each rule and number of atoms that leave rows; rule -1 if the row exists.
    """

    relation: str
    row: tuple[Lit, ...]
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name of the relation with the answer."""
        return added_name("why_not", self.relation)

    def rewrite(self, program: Program) -> Program:
        """Return ``program`` with the relation of the answer."""
        self.attempts = []
        relation = program.relation(self.relation)
        exists = rows_with_keys(relation, self.row, "why_not")
        rules = [replace(exists, head=self.name, exprs=_answered(-1, 0))]
        for number, rule in enumerate(rules_of(program, relation)):
            keys = list(zip(rule.exprs, self.row, strict=False))
            named = zip(relation.keys, keys, strict=False)
            others = tuple(
                show(is_equal(Col(c.name, c.type), k)) for c, (k, v) in named if isinstance(k, Lit) and k != v
            )
            if others:
                self.attempts.append(Attempt(rule.place, (), others))
                continue
            asked = replace(rule, conditions=(*rule.conditions, *(is_equal(k, v) for k, v in keys)))
            rules += self._prefixes(program, asked, number)
        keys_of_answer = (Column(RULE, "int"), Column(ATOMS, "int"))
        answer = Relation(self.name, keys_of_answer, (Dependent(Column(FOUND, "bigint"), "count"),), base=-1)
        return with_relation(program, answer, rules)

    def _prefixes(self, program: Program, rule: Rule, number: int) -> Iterator[Rule]:
        """Yield a rule for each number of joined atoms, and note the attempt."""
        ordered = _ordered(rule)
        remaining, bound, shown = list(rule.conditions), set[str](), dict[str, str]()
        holding: list[Expr] = []
        tries = []
        for count, atom in enumerate(ordered, 1):
            if atom.kind == "join":
                bound |= atom.bound
            ready = [c for c in remaining if columns(c) <= bound | atom.bound]
            remaining = [c for c in remaining if c not in ready]
            holding += ready
            name, own = stem_of(name_of(atom, program)), _columns(atom, program)
            tries.append(Try(name, atom.kind, tuple(_text(c, {**shown, **own}) for c in ready)))
            shown |= {variable: f"{name}.{column}" for variable, column in own.items() if variable not in shown}
            place = f"{rule.place}, {count} atoms"
            yield Rule(self.name, _answered(number, count), tuple(ordered[:count]), tuple(holding), place=place)
        self.attempts.append(Attempt(rule.place, tuple(tries)))


def _answered(rule: int, atoms: int) -> tuple[Lit, ...]:
    return Lit(rule, "int"), Lit(atoms, "int"), Lit(1, "bigint")


def _columns(atom: Atom, program: Program) -> dict[str, str]:
    """Return the column of the relation or input that each variable of ``atom`` is."""
    read = program.input(atom.input or 0) if atom.relation is None else program.relation(atom.relation)
    pairs = zip(atom.variables, read.columns, strict=True)
    return {variable: stem_of(c.name) for variable, c in pairs if variable is not None}


def _text(condition: Expr, names: Mapping[str, str]) -> str:
    return show(substitute(condition, lambda column: replace(column, name=names[column.name])))


def _ordered(rule: Rule) -> list[Atom]:
    """Return the atoms in the order in which they are joined: those that are bound first, absent rows last."""
    bound = {c for e in rule.conditions if any(isinstance(a, Lit) for a in getattr(e, "args", ())) for c in columns(e)}
    waiting = [a for a in rule.body if a.kind == "join"]
    order: list[Atom] = []
    while waiting:
        linked = [a for a in waiting if bound & a.bound] or waiting
        atom = linked[0]
        waiting.remove(atom)
        order.append(atom)
        bound |= atom.bound
        for condition in rule.conditions:
            if columns(condition) & bound:
                bound |= columns(condition)
    return [*order, *(a for a in rule.body if a.kind != "join")]
