"""Moves expressions out of the loop, to where an input is loaded.

    dist(y, min d + w) :- dist(x, d), in1(a, y, w), x = cast(a as bigint), kind(y) ...
    dist(y, min d + w) :- dist(x, d), in2(y, w, a_1), x = a_1          in2 computes a_1 := cast(a as bigint)

Two reasons: a join wants a plain column on the input's side, and the loop has no strings to compute with. Other
arithmetic stays where it is: at load it might fail on rows that never join.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.scope import inlined, variables
from pyspark_paralagg.compile.rewrite.simplify import with_input
from pyspark_paralagg.compile.rewrite.types import is_word
from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Call, Col, Expr, columns

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule


def hoist(program: Program) -> Program:
    """The program with input columns for what the loop need not, or cannot, compute."""
    rules = []
    for rule in program.rules:
        hoister = _Hoister(program, rule)
        hoisted = replace(
            rule,
            exprs=tuple(hoister.opaque(e) for e in rule.exprs),
            conditions=tuple(hoister.join_key(hoister.opaque(c)) for c in rule.conditions),
        )
        program, body = hoister.finish(hoisted)
        rules.append(body)
    return replace(program, rules=tuple(rules))


class _Hoister:
    """Collects what one rule's inputs compute besides their columns."""

    def __init__(self, program: Program, rule: Rule) -> None:
        self._program = program
        self._atoms = {v: s.atom for v, s in variables(rule, program).items()}
        self._inputs = {n for n, a in enumerate(rule.body) if a.input is not None}
        self._added: dict[Expr, Col] = {}

    def opaque(self, expr: Expr) -> Expr:
        """``expr`` with calls that touch strings (or other types without a word) replaced, where one input has all."""
        if not isinstance(expr, Call):
            return expr
        if not all(is_word(e.type) for e in (expr, *expr.args)) and self._home(expr) is not None:
            return self._column(expr)
        return replace(expr, args=tuple(self.opaque(a) for a in expr.args))

    def join_key(self, condition: Expr) -> Expr:
        """An equality between atoms with plain columns on the sides of inputs."""
        if not isinstance(condition, Call) or condition.fn != "EqualTo":
            return condition
        homes = [self._home(a) for a in condition.args]
        if homes[0] == homes[1]:
            return condition
        args = tuple(
            a if home is None or not isinstance(a, Call) else self._column(a)
            for a, home in zip(condition.args, homes, strict=True)
        )
        return replace(condition, args=args)

    def _home(self, expr: Expr) -> int | None:
        """The atom of the one input that ``expr`` reads."""
        atoms = {self._atoms[v] for v in columns(expr)}
        return next(iter(atoms)) if len(atoms) == 1 and atoms <= self._inputs else None

    def _column(self, expr: Expr) -> Col:
        if expr not in self._added:
            stem, n = min(columns(expr)), 1
            while f"{stem}_{n}" in self._atoms:
                n += 1
            name = f"{stem}_{n}"
            self._atoms[name] = self._atoms[stem]
            self._added[expr] = Col(name, expr.type, may_be_null(expr))
        return self._added[expr]

    def finish(self, rule: Rule) -> tuple[Program, Rule]:
        """The rule with its atoms binding the new columns."""
        program, body = self._program, list(rule.body)
        for expr, col in self._added.items():
            n = self._atoms[col.name]
            atom = body[n]
            source = program.input(atom.input or 0)
            inner = {v: source.exprs[p] for p, v in enumerate(atom.variables) if v is not None}
            computed = inlined(expr, inner)
            program, input_id = with_input(program, replace(source, exprs=(*source.exprs, computed)))
            body[n] = replace(atom, input=input_id, variables=(*atom.variables, col.name))
        return program, replace(rule, body=tuple(body))
