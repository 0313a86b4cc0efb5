"""Programs of the campaign: those of ``datalog.programs_random``, drawn from a seed, and more kinds of units.

    mutual    2-3 relations that need each other: min, max or bits beside sets, thresholds on values
    limited   a lattice or a set that ends after so many rounds
    texts     $MIN and $MAX of symbols, in the recursion and without

Drawing from ``random`` takes a hundredth of what Hypothesis takes; failures are shrunk by ``shrink``.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from datalog.bodies_random import NUMBER, SYMBOL, Body, Rel
from datalog.programs_random import CAP, LARGEST, SYMBOLS, UNITS, Case, Drawing, drawn_case

if TYPE_CHECKING:
    from collections.abc import Callable

ALL_UNITS = (*UNITS, "mutual", "mutual", "limited", "limited", "texts")


def case_of(seed: int) -> Case:
    """The program of a seed, and its data."""
    return drawn_case(Seeded(seed), ALL_UNITS)


class Seeded(Drawing):
    """Draws from ``random``."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        super().__init__(lambda _: None)
        # With values below 0 a recursion that adds may go on for ever, so few programs have them.
        self.lowest = self.choice(0, 0, 0, -self.largest)

    def choice(self, *options: Any) -> Any:
        return self._dice.choice(options)

    def chance(self) -> bool:
        return self._dice.random() < 0.5

    def several(self, options: tuple[str, ...], least: int, most: int) -> list[str]:
        return self._dice.choices(options, k=self.number(least, most))

    def number(self, least: int, most: int) -> int:
        return self._dice.randint(least, most)

    def types(self, least: int, most: int) -> str:
        return "".join(self.several((NUMBER, NUMBER, SYMBOL), least, most))

    def constant(self, type_: str) -> str:
        return str(self.number(self.lowest, self.largest)) if type_ == NUMBER else super().constant(type_)

    def rows(self, types: str) -> list[tuple[Any, ...]]:
        draws: dict[str, Callable[[], Any]] = {
            NUMBER: lambda: self.number(self.lowest, self.largest),
            SYMBOL: lambda: self.choice(*SYMBOLS[: self.largest]),
        }
        return [tuple(draws[t]() for t in types) for _ in range(self.number(self.least, 9))]

    # --- units ---

    def limited(self) -> None:
        """A set or a lattice with ``.limit``."""
        before = len(self.relations)
        getattr(self, self.choice("closure", "lattice", "mutual"))()
        name = self.relations[before].name
        recurses = any(c.startswith(f"{name}(") and f" {name}(" in c.partition(":-")[2] for c in self.clauses)
        if recurses:
            self.clauses.append(f".limit {name}(iterations={self.number(1, 4)})")

    def texts(self) -> None:
        """The least or greatest symbol of each key."""
        keys = self.types(1, 3)
        rel = Rel(self.fresh(), keys + SYMBOL)
        aggregate = self.choice("MIN", "MAX")
        for _ in range(self.number(1, 2)):
            body = self.body(atoms=(1, 2))
            self.rule(f"{rel.name}({self._terms(body, keys)}, ${aggregate}({body.term(SYMBOL)}))", body)
        if self.chance():
            body, values = self._recursive_body(rel, len(keys))
            body.extras(aggregates=False, is_recursive=True)
            terms = self._terms(body, keys, is_recursive=True)
            self.rule(f"{rel.name}({terms}, ${aggregate}({values[0]}))", body)
        self.relations.append(rel)

    def mutual(self) -> None:
        """Relations that need each other."""
        aggregate = self.choice("MIN", "MAX", "BITOR")
        rels = [(Rel(self.fresh(), self.types(1, 2)), self.choice(aggregate, aggregate, "")) for _ in range(2)]
        rels += [(Rel(self.fresh(), self.types(1, 3)), aggregate)] if self.chance() else []
        rels = [(Rel(r.name, r.types + NUMBER * bool(a)), a) for r, a in rels]
        for n, (rel, kind) in enumerate(rels):
            self.declare(rel, [f"k{p}" for p in range(len(rel.types))])
            for _ in range(self.number(n == 0, 2)):
                body = self.body(atoms=(1, 2), aggregates=False)
                self._head(rel, kind, body, body.term(NUMBER), is_recursive=False)
            for _ in range(self.number(1, 2)):
                self._mutual_rule(rel, kind, rels, rels[(n + 1) % len(rels)])
        self.relations += [rel for rel, _ in rels]

    def _mutual_rule(self, rel: Rel, kind: str, rels: list[tuple[Rel, str]], needed: tuple[Rel, str]) -> None:
        """A rule that reads the next relation of the circle, and perhaps another one."""
        body, values = Body(self), []
        aggregate = next((a for _, a in rels if a), "")
        for n, (read, has_value) in enumerate([needed, *([self.choice(*rels)] if self.chance() else [])]):
            fixed = {len(read.types) - 1: f"v{n}"} if has_value else {}
            body.atom(read, fixed)
            if has_value:
                values.append(f"v{n}")
                body.bound.pop(f"v{n}", None)
        for _ in range(self.number(0, 2)):
            body.atom(self.readable())
        body.extras(aggregates=False, is_recursive=True)
        if values and aggregate in ("MIN", "MAX") and self.chance():
            # Once it holds it goes on to hold: values only improve.
            body.literals.append(f"{values[-1]} {'<=' if aggregate == 'MIN' else '>='} {self.number(0, LARGEST)}")
        value = self._value(kind, body, values) if kind and values else self.constant(NUMBER)
        self._head(rel, kind, body, value, is_recursive=True)

    def _head(self, rel: Rel, kind: str, body: Body, value: str, *, is_recursive: bool) -> None:
        keys = rel.types[:-1] if kind else rel.types
        terms = self._terms(body, keys, is_recursive=is_recursive)
        self.rule(f"{rel.name}({terms}{f', ${kind}({value})' if kind else ''})", body)

    def _terms(self, body: Body, types: str, *, is_recursive: bool = False) -> str:
        return ", ".join(body.term(t, is_recursive=is_recursive) for t in types)


__all__ = ["ALL_UNITS", "CAP", "Seeded", "case_of"]
