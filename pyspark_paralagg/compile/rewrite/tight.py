"""Write the rules about tight instances of a rule: those that derive the final row of their head (``derivations``)."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.added import fresh_variable, is_equal, is_same
from pyspark_paralagg.program.expr import Call, Col, Lit
from pyspark_paralagg.program.program import Atom, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Column, Program, Relation

HEIGHT = "bigint"
"""The type of heights."""


class Tight:
    """A rule's tight instances: its body with variables for all columns, the head's final row, and heights."""

    def __init__(
        self,
        rule: Rule,
        program: Program,
        decided: Mapping[str, tuple[str, ...] | None],
        heights: Mapping[str, Relation],
    ) -> None:
        self.rule = rule
        self._head = program.relation(rule.head)
        self._heights = heights
        self._is_single = decided[rule.head] is not None
        self.body = tuple(self._full(a, n) for n, a in enumerate(rule.body))
        self.row = rule.exprs if not self._head.dependents else self._columns("of", self._head.columns)
        derived = dict(zip((c.name for c in self._head.supplied), rule.exprs, strict=True))
        final = dict(zip((c.name for c in self._head.columns), self.row, strict=True))
        equal = [is_equal(final[k.name], derived[k.name]) for k in self._head.keys if self._head.dependents]
        decisive = [is_same(final[c], derived[c]) for c in decided[rule.head] or ()]
        self._tight = (*rule.conditions, *equal, *decisive)
        self._below = [(a, n) for n, a in enumerate(self.body) if a.relation in heights and a.kind == "join"]
        self._read = [a for a in self.body if a.relation in decided and a.kind == "join"]

    @property
    def _keys(self) -> tuple[Expr, ...]:
        return self.row[: len(self._head.keys)]

    def height(self) -> Rule:
        """Return the rule of the heights of the head's rows."""
        return self._rule(self._heights[self.rule.head], (*self._keys, self._least()), self._read_heights(), ())

    def needs(self, needed: Mapping[str, Relation]) -> Iterator[tuple[str, Rule]]:
        """Yield the rules of the rows that instances of least height read, with their relations."""
        for atom in self._read:
            relation = str(atom.relation)
            types = [k.type for k in needed[relation].keys]
            keys = tuple(Col(str(v), t) for v, t in zip(atom.variables, types, strict=False))
            yield relation, self._backwards(needed, needed[relation], keys)

    def instance(self, needed: Mapping[str, Relation]) -> Rule:
        """Return the rule of the instances of needed rows; who calls it sets its head."""
        return self._backwards(needed, self._head, ())

    def _backwards(self, needed: Mapping[str, Relation], head: Relation, exprs: tuple[Expr, ...]) -> Rule:
        wanted, conditions = self._joined(needed[self.rule.head], "need", self._keys)
        if not self._is_single:
            return self._rule(head, exprs, ((wanted,), ()), conditions)
        height = fresh_variable(self.rule, "height")
        known, agrees = self._joined(self._heights[self.rule.head], "known", self._keys, height)
        is_least = is_equal(Col(height, HEIGHT, nullable=False), self._least())
        atoms, found = self._read_heights()
        return self._rule(head, exprs, ((wanted, known, *atoms), found), (*conditions, *agrees, is_least))

    def _rule(
        self,
        head: Relation,
        exprs: tuple[Expr, ...],
        read: tuple[tuple[Atom, ...], tuple[Expr, ...]],
        conditions: tuple[Expr, ...],
    ) -> Rule:
        atoms, found = read
        final = [Atom(tuple(c.name for c in self.row if isinstance(c, Col)), self._head.name)]
        body = (*atoms, *self.body, *(final if self._head.dependents else ()))
        place = f"{self.rule.place}, {head.name}"
        return Rule(head.name, exprs, body, (*self._tight, *found, *conditions), place=place)

    def _read_heights(self) -> tuple[tuple[Atom, ...], tuple[Expr, ...]]:
        """Return the atoms that read the heights of the rows below, and how they agree with these rows."""
        atoms: list[Atom] = []
        conditions: list[Expr] = []
        for atom, n in self._below:
            relation = self._heights[str(atom.relation)]
            keys = [Col(str(v), k.type) for v, k in zip(atom.variables, relation.keys, strict=False)]
            read, agrees = self._joined(relation, f"found_{n}", keys, self._height_variable(n))
            atoms.append(read)
            conditions += agrees
        return tuple(atoms), tuple(conditions)

    def _joined(
        self, relation: Relation, stem: str, keys: Sequence[Expr], height: str | None = None
    ) -> tuple[Atom, tuple[Expr, ...]]:
        """Return an atom over ``relation``, with variables of its own for its keys, which equal ``keys``."""
        own = self._columns(stem, relation.keys)
        names = (*(c.name for c in own), *(() if height is None else (height,)))
        return Atom(names, relation.name), tuple(is_equal(o, k) for o, k in zip(own, keys, strict=True))

    def _least(self) -> Expr:
        """Return the height that the rule gives to its head."""
        heights: list[Expr] = [Col(self._height_variable(n), HEIGHT, nullable=False) for _, n in self._below]
        if not heights:
            return Lit(0, HEIGHT)
        highest = reduce(lambda a, b: Call("Greatest", (a, b), HEIGHT, nullable=False), heights)
        return Call("Add", (highest, Lit(1, HEIGHT)), HEIGHT, nullable=False)

    def _height_variable(self, n: int) -> str:
        return fresh_variable(self.rule, f"height_{n}")

    def _columns(self, stem: str, columns: Sequence[Column]) -> tuple[Col, ...]:
        return tuple(Col(fresh_variable(self.rule, f"{stem}_{c.name}"), c.type) for c in columns)

    def _full(self, atom: Atom, n: int) -> Atom:
        """Return the atom with a variable for each column; a semi join of a single derivation as a join."""
        if atom.kind == "anti":
            return atom
        names = tuple(v or fresh_variable(self.rule, f"seen_{n}_{p}") for p, v in enumerate(atom.variables))
        return replace(atom, variables=names, kind="join" if self._is_single else atom.kind)
